// Reading slowly: what is kept is bounded, nothing is lost, nothing waits for ever.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { SidecarEvent } from "agent-sidecar-client";

import { EventBuffer, EVENTS_KEPT, Intake } from "../dist/intake.js";
import { Bench, eventsOf, FAKE } from "./support.js";

const event = (seq: number) => ({ seq, type: "run.started", data: { agent: "a" } }) as SidecarEvent;
const delta = (text: string) =>
  ({ seq: 0, runId: "r", type: "message.delta", data: { messageId: "m", contentIndex: 0, text } }) as SidecarEvent;

function filled(count: number, of: (seq: number) => SidecarEvent = event) {
  const switched: boolean[] = [];
  const intake = new Intake((reading) => switched.push(reading));
  const buffer = new EventBuffer(intake);
  const leave = buffer.enter();
  for (let seq = 1; seq <= count; seq++) buffer.put(of(seq));
  return { switched, intake, buffer, leave };
}

test("reading stops at the bound, and goes on when half of it is read", async () => {
  const { switched, buffer } = filled(EVENTS_KEPT);
  assert.deepEqual(switched, [false]);

  for (let seq = 1; seq < EVENTS_KEPT / 2; seq++) assert.equal((await buffer.get())?.seq, seq);
  assert.deepEqual(switched, [false]);
  await buffer.get();

  assert.deepEqual(switched, [false, true]);
});

test("reading goes on while somebody waits for an answer", async () => {
  const { switched, intake } = filled(EVENTS_KEPT);

  await intake.wait(Promise.resolve());

  assert.deepEqual(switched, [false, true, false]);
});

test("reading goes on where a loop was left, and stops again for a second one", () => {
  const { switched, buffer, leave } = filled(EVENTS_KEPT);

  leave();
  assert.deepEqual(switched, [false, true]);
  buffer.put(event(0));
  assert.deepEqual(switched, [false, true]);
  buffer.enter();

  assert.deepEqual(switched, [false, true, false]);
});

test("two readers share what comes, and both learn of the end", async () => {
  const { buffer } = filled(0);
  const got = Promise.all([buffer.get(), buffer.get()]);

  buffer.put(event(1));
  buffer.end();

  assert.deepEqual((await got).map((one) => one?.seq).sort(), [1, undefined]);
});

test("above the bound text deltas are joined", async () => {
  const { buffer } = filled(EVENTS_KEPT + 500, (seq) => delta(`${seq} `));
  buffer.end();

  const texts: string[] = [];
  for (let got = await buffer.get(); got !== undefined; got = await buffer.get()) {
    if (got.type === "message.delta") texts.push(got.data.text);
  }

  assert.equal(texts.length, EVENTS_KEPT);
  assert.equal(texts.join(""), Array.from({ length: EVENTS_KEPT + 500 }, (_, index) => `${index + 1} `).join(""));
});

test("above the bound what one tool says is joined line by line", async () => {
  const says = (callId: string, text: string) =>
    ({ seq: 0, runId: "r", type: "tool.delta", data: { callId, text } }) as SidecarEvent;
  const { buffer } = filled(EVENTS_KEPT);
  for (const [callId, text] of [
    ["a", "1"],
    ["a", "2"],
    ["b", "3"],
  ] as const) {
    buffer.put(says(callId, text));
  }
  buffer.end();

  const said: object[] = [];
  for (let got = await buffer.get(); got !== undefined; got = await buffer.get()) {
    if (got.type === "tool.delta") said.push(got.data);
  }

  assert.deepEqual(said, [
    { callId: "a", text: "1\n2" },
    { callId: "b", text: "3" },
  ]);
});

test("a run whose loop was left holds up nothing", { timeout: 10_000 }, async (t) => {
  const client = await new Bench(t).start({ command: FAKE });
  const completed = new Promise((resolve) =>
    client.onEvent((one) => one.type === "run.completed" && resolve(one.runId)),
  );

  const run = client.run("5000");
  for await (const _ of run) break;

  assert.equal(await completed, run.runId);
  assert.equal((await eventsOf(run)).at(-1)?.type, "run.completed");
});

test("a run that is read late loses nothing", async (t) => {
  const client = await new Bench(t).start({ command: FAKE });
  let come = 0;
  const full = new Promise<void>((resolve) => client.onEvent(() => ++come === EVENTS_KEPT && resolve()));

  const run = client.run("5000");
  await full;
  const events = await eventsOf(run);

  const text = events.map((one) => (one.type === "message.delta" ? one.data.text : "")).join("");
  assert.equal(text.length, 5_000 * 1_000);
  assert.deepEqual(
    text.match(/\d+/g)?.map(Number),
    Array.from({ length: 5_000 }, (_, index) => index + 1),
  );
  assert.equal((await run.result()).status, "completed");
});
