// What happens when the real sidecar is killed: with a new process, and with a client that has to start one itself.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  allowOnce,
  findSidecar,
  hostTool,
  RpcError,
  type Run,
  type SidecarClient,
  SidecarDied,
  type SidecarEvent,
} from "agent-sidecar-client";

import { Bench, durable, FAKE, STALLS, until } from "./support.js";

const deleteNote = hostTool<{ note: string }>(
  {
    name: "delete_note",
    description: "Delete a note.",
    inputSchema: { type: "object", properties: { note: { type: "string" } } },
    approvalMode: "always_require",
  },
  ({ note }) => `${note} is gone.`,
);

async function begun(client: SidecarClient): Promise<{ sessionId: string; run: Run }> {
  const session = await client.createSession({ tools: [deleteNote] });
  return { sessionId: session.sessionId, run: session.run("delete a.txt") };
}

async function kill(client: SidecarClient): Promise<SidecarDied> {
  const { ended } = client;
  process.kill(client.pid, "SIGKILL");
  return ended;
}

test("without reconnect a killed sidecar ends its runs and requests", async (t) => {
  const client = await new Bench(t).start();
  const run = (await client.createSession()).run(STALLS);
  await until(run, "message.delta");

  const death = await kill(client);

  assert.equal(death.signal, "SIGKILL");
  await assert.rejects(run.result(), SidecarDied);
  await assert.rejects(client.request("getState", {}), SidecarDied);
});

for (const moment of ["run.started", "message.completed", "message.delta"] as const) {
  test(`a run survives a kill at ${moment}: it is interrupted, and no event is lost or doubled`, async (t) => {
    const deaths: SidecarDied[] = [];
    const client = await new Bench(t).start({ reconnect: true, onRestart: (death) => deaths.push(death) });
    const all: SidecarEvent[] = [];
    client.onEvent((event) => all.push(event));
    const session = await client.createSession();
    const run = session.run(STALLS);
    await until(run, moment);

    await kill(client);

    const result = await run.result();
    assert.equal(result.status, "interrupted");
    assert.equal(deaths.length, 1);
    assert.equal((await session.run("hello").result()).text, "You said: hello");
    const seen = durable(all);
    assert.deepEqual(
      seen.map((event) => (event as SidecarEvent).seq),
      [...seen.keys()].map((index) => index + 1),
    );
    assert.deepEqual(seen, (await session.getEvents({ afterSeq: 0 })).events);
  });
}

test("a new process has the host's tools, providers and consent again", async (t) => {
  const host = {
    approve: () => allowOnce(),
    providers: { desk: { beforeRun: () => ({ instructions: "Be brief." }) } },
  };
  const client = await new Bench(t).start({ reconnect: true, host });
  const session = await client.createSession({
    tools: [deleteNote],
    contextProviders: [{ type: "host", sourceId: "desk" }],
  });

  await kill(client);

  assert.equal((await session.run("delete a.txt").result()).text, "a.txt is gone.");
  assert.equal((await session.run("what were you told").result()).text, "Be brief.");
});

test("a question that a sidecar died with is seen in the run's result, and answered late", async (t) => {
  const client = await new Bench(t).start({ reconnect: true, host: { approve: () => new Promise(() => {}) } });
  const session = await client.createSession({ tools: [deleteNote] });
  const run = session.run("delete a.txt");
  await until(run, "request.opened");

  await kill(client);

  const { stopReason, pendingRequests: [pending] = [] } = await run.result();
  assert.equal(stopReason, "inputRequired");
  assert(pending);
  assert.deepEqual((await session.getState({ include: ["pending"] })).pendingRequests, [pending]);
  const completed = new Promise((resolve) =>
    client.onEvent((event) => event.type === "tool.completed" && resolve(event.data.content)),
  );
  assert.equal((await session.answer(pending, allowOnce())).status, "resolved");
  assert.deepEqual(await completed, [{ type: "text", text: "a.txt is gone." }]);
});

test("a closed session is not resumed, and a one-off run ends with its process", async (t) => {
  const client = await new Bench(t).start({ reconnect: true });
  const session = await client.createSession();
  await session.close();
  const oneOff = client.run(STALLS);
  await until(oneOff, "message.delta");

  await kill(client);

  await assert.rejects(oneOff.result(), SidecarDied);
  await assert.rejects(session.run("hello").result(), { name: "RpcError", code: 4005 });
});

test("a run of a session that cannot be resumed ends with the refusal", async (t) => {
  const bench = new Bench(t);
  const client = await bench.start({ reconnect: true });
  const run = (await client.createSession()).run(STALLS);
  await until(run, "message.delta");
  bench.write("sidecar.toml", "no such key = 1");

  await kill(client);

  await assert.rejects(run.result(), (error) => error instanceof RpcError && error.kind === "configInvalid");
  assert((await client.request("getState", {})).server);
});

test("where missed events are not kept any more, a session goes on behind them", async (t) => {
  const cursors: unknown[] = [];
  const trace = (direction: string, message: any) =>
    direction === "sent" && message.method === "resumeSession" && cursors.push(message.params.replayFrom);
  const client = await new Bench(t).start({ command: FAKE, reconnect: true, trace });
  await client.createSession({ sessionId: "s" });

  for (const _ of ["once", "twice"]) {
    await kill(client);
    await client.request("x-askHost" as "getState", { method: "x" } as object);
  }

  const [missed, kept] = [3, 10].map((seq) => ({ type: "seq", seq, epoch: "e2" }));
  assert.deepEqual(cursors, [missed, undefined, kept]);
});

test("after three vain attempts everything that waits learns of it", async (t) => {
  const bench = new Bench(t);
  const { program } = findSidecar({ env: process.env, cwd: bench.root });
  const command = bench.write("starter", `#!/bin/sh\nexec "${program}" "$@"\n`, 0o755);
  let attempts = 0;
  const client = await bench.start({ command, reconnect: true, onRestart: () => attempts++ });
  const run = (await client.createSession()).run(STALLS);
  await until(run, "message.delta");
  bench.write("starter", "#!/bin/sh\necho out of luck >&2\nexit 3\n");

  await kill(client);

  await assert.rejects(
    run.result(),
    (error) => error instanceof SidecarDied && error.exitCode === 3 && error.stderr === "out of luck",
  );
  assert.equal(attempts, 3);
  await assert.rejects(client.request("getState", {}), SidecarDied);
});

test("another client replays a session as it was lived, and answers what was open", async (t) => {
  const bench = new Bench(t);
  const first = await bench.start({ host: { approve: () => new Promise(() => {}) } });
  const lived: SidecarEvent[] = [];
  first.onEvent((event) => lived.push(event));
  const { sessionId, run } = await begun(first);
  await until(run, "request.opened");
  await kill(first);
  await assert.rejects(run.result(), SidecarDied);

  const second = await bench.start();
  const replayed: SidecarEvent[] = [];
  const completed = new Promise<string>((resolve) => {
    second.onEvent((event) => {
      replayed.push(event);
      if (event.type === "tool.completed") resolve(event.data.status);
    });
  });
  const resumed = await second.resumeSession(sessionId, { replayFrom: { type: "start" }, tools: [deleteNote] });

  const [pending] = resumed.pendingRequests;
  assert.equal(pending?.kind, "approval");
  assert.equal(resumed.info.status, "inputRequired");
  const answered = await second.request("resolveRequest", {
    sessionId,
    requestId: pending.requestId,
    result: { outcome: "selected", optionId: "allowOnce" },
  });
  assert.equal(answered.status, "resolved");
  assert.equal(await completed, "completed");
  const before = durable(lived);
  assert(before.length > 3);
  assert.deepEqual(durable(replayed).slice(0, before.length), before);
});
