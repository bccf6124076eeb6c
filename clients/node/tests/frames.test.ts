// Frames, however the pipe cuts them.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";

import { FrameReader } from "../dist/frames.js";

function read(chunks: readonly (string | Buffer)[]) {
  const input = new PassThrough();
  const messages: unknown[] = [];
  let broken = false;
  new FrameReader(input, () => (broken = true), undefined).listen((message) => messages.push(message));
  for (const chunk of chunks) input.write(chunk);
  return new Promise<{ messages: unknown[]; broken: boolean }>((resolve) =>
    input.end(() => setImmediate(() => resolve({ messages, broken }))),
  );
}

const frame = (value: unknown, header = "Content-Length") => {
  const body = Buffer.from(JSON.stringify(value));
  return Buffer.concat([Buffer.from(`${header}: ${body.length}\r\n\r\n`), body]);
};

test("messages come whole whatever the size of the pieces", async () => {
  const sent = [{ a: "é" }, { b: "x".repeat(10_000) }, { c: "\u2028😀" }];
  const whole = Buffer.concat([...sent.map((value) => frame(value)), frame({ d: 1 }, "X: y\r\ncontent-length")]);

  for (const size of [1, 2, 7, 4_096, whole.length]) {
    const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
      whole.subarray(at * size, (at + 1) * size),
    );
    assert.deepEqual((await read(pieces)).messages, [...sent, { d: 1 }]);
  }
});

for (const [what, text] of [
  ["a header without a length", "Content-Type: text\r\n\r\n{}"],
  ["a header without an end", "x".repeat(8_193)],
  ["a body that is no JSON", "Content-Length: 1\r\n\r\n{"],
]) {
  test(`${what} ends the conversation, and what came before counts`, async () => {
    const { messages, broken } = await read([frame({ a: 1 }), text ?? "", frame({ b: 2 })]);

    assert.deepEqual([messages, broken], [[{ a: 1 }], true]);
  });
}
