// Runs against the real sidecar: streamed, awaited, failed, cancelled.
import assert from "node:assert/strict";
import { test } from "node:test";

import { RpcError } from "agent-sidecar-client";

import { Bench, eventsOf, STALLS, until } from "./support.js";

test("a run is an iterator of its events, and its result can be awaited", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession();

  const run = session.run("hello");
  const events = await eventsOf(run);
  const result = await run.result();

  const streamed = events.map((event) => (event.type === "message.delta" ? event.data.text : "")).join("");
  assert.equal(streamed, "You said: hello");
  assert.equal(result.text, "You said: hello");
  assert.equal(events.at(-1)?.type, "run.completed");
  assert.equal(events.at(-1)?.seq, result.lastSeq);
  assert.equal(result.runId, run.runId);
});

test("a result can be awaited without reading the events", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession({ instructions: "Be brief." });

  assert.equal((await session.run("what were you told").result()).text, "Be brief.");
  assert.equal((await session.getHistory()).messages.length, 2);
});

test("sessions run at the same time, and each run has its own events", async (t) => {
  const client = await new Bench(t).start();
  const sessions = await Promise.all([client.createSession(), client.createSession()]);

  const [one, two] = sessions.map((session, number) => session.run(`number ${number}`));
  assert(one && two);
  const [ofOne, ofTwo] = await Promise.all([eventsOf(one), eventsOf(two)]);

  assert(ofOne.every((event) => event.runId === one.runId));
  assert(ofTwo.every((event) => event.runId === two.runId));
  assert.equal((await two.result()).text, "You said: number 1");
});

test("runs of one id in two sessions and in none keep their events apart", async (t) => {
  const client = await new Bench(t).start();
  const [one, two] = await Promise.all([client.createSession(), client.createSession()]);
  const runs = [
    one.run("first", { runId: "r" }),
    two.run("second", { runId: "r" }),
    client.run("third", { runId: "r" }),
  ];

  const sessions = (await Promise.all(runs.map(eventsOf))).map((events) => [
    ...new Set(events.map((event) => event.sessionId)),
  ]);

  assert.deepEqual(sessions.slice(0, 2), [[one.sessionId], [two.sessionId]]);
  assert.equal(new Set(sessions.flat()).size, 3);
  const texts = (await Promise.all(runs.map((run) => run.result()))).map(({ text }) => text);
  assert.deepEqual(texts, ["You said: first", "You said: second", "You said: third"]);
});

test("a run that is attached to twice answers both", async (t) => {
  const client = await new Bench(t).start({ reconnect: true });
  const session = await client.createSession();
  const first = session.run(STALLS, { runId: "r" });
  await until(first, "message.delta");
  const second = session.run(STALLS, { runId: "r" });
  await client.request("getState", {});
  const { ended } = client;
  process.kill(client.pid, "SIGKILL");
  await ended;

  const statuses = (await Promise.all([first.result(), second.result()])).map(({ status }) => status);

  assert.deepEqual(statuses, ["interrupted", "interrupted"]);
});

test("a run without a session has its events too", async (t) => {
  const client = await new Bench(t).start();

  const run = client.run("hello");

  assert.equal((await eventsOf(run)).at(-1)?.type, "run.completed");
  assert.equal((await run.result()).status, "completed");
});

test("a failed run throws at the end of its events and from its result", async (t) => {
  const client = await new Bench(t).start();
  const run = (await client.createSession()).run("fail");
  const isFailure = (error: unknown) =>
    error instanceof RpcError && error.kind === "modelUnavailable" && error.code === 4036 && error.retryable;

  const types: string[] = [];
  await assert.rejects(async () => {
    for await (const event of run) types.push(event.type);
  }, isFailure);
  await assert.rejects(run.result(), isFailure);

  assert.equal(types.at(-1), "run.completed");
});

test("an AbortSignal cancels a run, whose result says so and holds what had come", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession();
  const controller = new AbortController();

  const run = session.run(STALLS, { signal: controller.signal });
  await until(run, "message.delta");
  controller.abort();

  const result = await run.result();
  assert.equal(result.status, "cancelled");
  assert.match(result.text, /^Once upon/);
  assert.equal((await session.run("hello").result()).text, "You said: hello");
});

test("a run is cancelled by its own cancel, and by its session's", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession();

  const own = session.run(STALLS);
  own.cancel();
  assert.equal((await own.result()).status, "cancelled");

  const byName = session.run(STALLS);
  await until(byName, "run.started");
  assert.equal((await session.cancel(byName.runId)).status, "cancelling");
  assert.equal((await byName.result()).status, "cancelled");
});

test("a signal that was aborted before starts no run", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession();

  assert.throws(() => session.run("hello", { signal: AbortSignal.abort() }), { name: "AbortError" });

  assert.equal((await session.getHistory()).messages.length, 0);
});

test("an AbortSignal cancels any other request, which then throws the signal's reason", async (t) => {
  const client = await new Bench(t).start();
  const { sessionId } = await client.createSession();
  const controller = new AbortController();

  const params = { sessionId, afterSeq: 0, waitMs: 60_000 };
  const polling = client.request("getEvents", params, { signal: controller.signal });
  await client.request("getState", {});
  controller.abort(new Error("enough"));

  await assert.rejects(polling, { message: "enough" });
});

test("a session is looked into, changed, forked and closed", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession({ state: { mood: "calm" } });
  const { runId } = await session.run("hello").result();

  assert.deepEqual((await session.getState({ include: ["state"] })).state, { mood: "calm" });
  assert.equal((await session.update({ title: "Greetings" })).session.title, "Greetings");
  assert.equal((await session.explainRun(runId)).calls.length, 1);
  assert.equal((await session.getEvents({ afterSeq: 0, limit: 1 })).hasMore, true);
  assert.notEqual((await session.fork()).sessionId, session.sessionId);

  await session.close();
  await assert.rejects(session.run("hello").result(), (error: RpcError) => error.kind === "sessionClosed");
  await client.deleteSession(session.sessionId);
  await assert.rejects(client.resumeSession(session.sessionId), (error: RpcError) => error.kind === "sessionNotFound");
});

test("a run that repeats an id gets the stored result", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession();
  const first = await session.run("hello", { runId: "r1" }).result();

  assert.deepEqual(await session.run("hello", { runId: "r1" }).result(), first);
  await assert.rejects(
    session.run("bye", { runId: "r1" }).result(),
    (error: RpcError) => error.kind === "idempotencyConflict",
  );
});

test("notifications reach their listeners, and a listener that throws stops nothing", async (t) => {
  const client = await new Bench(t).start();
  const closed = new Promise((resolve) => client.onNotification("session/closed", resolve));
  const warned = new Promise<void>((resolve) =>
    process.on("warning", ({ message }) => message === "a listener of ours" && resolve()),
  );
  client.onEvent(() => {
    throw new Error("a listener of ours");
  });
  const session = await client.createSession();

  assert.equal((await session.run("hello").result()).status, "completed");
  await session.close();

  assert.deepEqual(await closed, { sessionId: session.sessionId, reason: "closed" });
  await warned;
});
