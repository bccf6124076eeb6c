// What a host's callbacks throw: shown as a warning, and harmful to nothing. With a real sidecar.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { StartOptions } from "agent-sidecar-client";

import { Bench } from "./support.js";

const MINE = "a callback of ours";
const fail = () => {
  throw new Error(MINE);
};
/** The first message of a run in one direction. */
const failsAt = (method: string, way: string) => (direction: string, message: object) => {
  if (direction === way && "method" in message && message.method === method) fail();
};

for (const [what, options] of [
  ["onStderr", { arguments: ["--log-level", "debug"], onStderr: fail }],
  ["trace of what comes", { trace: failsAt("run/event", "received") }],
  ["trace of what is sent", { trace: failsAt("run", "sent") }],
  ["onRestart", { reconnect: true, onRestart: fail }],
] as [string, StartOptions][]) {
  test(`a throwing ${what} is a warning, and the run goes well`, async (t) => {
    const warned = new Promise<void>((resolve) =>
      process.on("warning", ({ message }) => message === MINE && resolve()),
    );
    const client = await new Bench(t).start(options);
    const session = await client.createSession();
    if (options.reconnect) {
      const { ended } = client;
      process.kill(client.pid, "SIGKILL");
      await ended;
    }

    assert.equal((await session.run("hello").result()).text, "You said: hello");
    await warned;
  });
}
