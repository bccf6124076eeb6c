// The limits of starting anew: crash loops, a session that is refused or never answered, a process that never greets.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { type SidecarClient, SidecarDied, type StartOptions } from "agent-sidecar-client";

import { Bench, FAKE } from "./support.js";

async function started(t: TestContext, options: StartOptions = {}) {
  const deaths: SidecarDied[] = [];
  const onRestart = (death: SidecarDied) => deaths.push(death);
  const client = await new Bench(t).start({ command: FAKE, reconnect: true, onRestart, ...options });
  return { client, deaths, session: await client.createSession({ sessionId: "s" }) };
}

async function kill(client: SidecarClient): Promise<void> {
  const { ended } = client;
  process.kill(client.pid, "SIGKILL");
  await ended;
}

/** A trace that tells when a request of a method is sent. */
function sending(method: string) {
  let tell = () => {};
  const sent = new Promise<void>((resolve) => (tell = resolve));
  const trace = (direction: string, message: object) => {
    if (direction === "sent" && "method" in message && message.method === method) tell();
  };
  return { sent, trace };
}

test("a run that every process dies on ends after three new ones", async (t) => {
  const { deaths, session } = await started(t);

  await assert.rejects(session.run("dies").result(), (error) => error instanceof SidecarDied && error.exitCode === 9);

  assert.equal(deaths.length, 3);
  await assert.rejects(session.run("1").result(), SidecarDied);
});

test("an answered run counts as a sign that the process holds", async (t) => {
  const { client, deaths, session } = await started(t);

  for (let death = 1; death <= 4; death++) {
    await kill(client);
    assert.equal((await session.run("1").result()).status, "completed");
  }

  assert.equal(deaths.length, 4);
});

test("a life of some seconds counts as such a sign, too", async (t) => {
  const { client, deaths } = await started(t);
  const now = performance.now.bind(performance);
  let ahead = 0;
  t.mock.method(performance, "now", () => now() + ahead);

  for (let death = 1; death <= 4; death++) {
    ahead += 5_000;
    await kill(client);
    await client.request("x-askHost" as "getState", { method: "x" } as object);
  }

  assert.equal(deaths.length, 4);
});

test("a run that is refused because the sidecar ends is answered by the next one", async (t) => {
  const { deaths, session } = await started(t);

  assert.equal((await session.run("is ended").result()).status, "completed");

  assert.equal(deaths.length, 1);
});

test("without reconnect such a run ends with the refusal, which may be tried again", async (t) => {
  const { session } = await started(t, { reconnect: false });

  await assert.rejects(session.run("is ended").result(), {
    name: "RpcError",
    kind: "serverCancelled",
    retryable: true,
  });
});

test("a close is in time while a session is being resumed without an answer", { timeout: 10_000 }, async (t) => {
  const { sent, trace } = sending("resumeSession");
  const { client } = await started(t, { trace, env: { FAKE_RESUME: "hangs" } });
  await kill(client);
  await sent;

  await client.close(100);

  assert.equal((await client.ended).signal, "SIGKILL");
});

test("a request can be given up while a session is being resumed", { timeout: 10_000 }, async (t) => {
  const { sent, trace } = sending("resumeSession");
  const { client } = await started(t, { trace, env: { FAKE_RESUME: "hangs" } });
  await kill(client);
  await sent;
  const controller = new AbortController();

  const asked = client.request("getState", {}, { signal: controller.signal });
  controller.abort(new Error("enough"));

  await assert.rejects(asked, { message: "enough" });
  await client.close(100);
});

test("a session that is locked for a moment is resumed all the same", async (t) => {
  const { client, session } = await started(t, { env: { FAKE_RESUME: "locked" } });
  await kill(client);

  assert.equal((await session.run("1").result()).status, "completed");
});

test("a new process that never greets is given up", { timeout: 10_000 }, async (t) => {
  const bench = new Bench(t);
  const command = bench.write("starter", `#!/bin/sh\nexec "${FAKE.join('" "')}" "$@"\n`, 0o755);
  const client = await bench.start({ command, reconnect: true });
  const session = await client.createSession({ sessionId: "s" });
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  t.mock.method(AbortSignal, "timeout", (ms: number) => timeout(ms / 1_000));
  bench.write("starter", "#!/bin/sh\nexec sleep 600\n");
  await kill(client);

  await assert.rejects(session.run("1").result(), SidecarDied);
});
