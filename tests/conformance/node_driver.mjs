// A driver of the Node client: every operation by the method that its users call, every event by its listeners.
// agent-sidecar conformance -- node tests/conformance/node_driver.mjs, where the package agent-sidecar-client is found
import { createInterface } from "node:readline";

import { RpcError, SidecarClient, SidecarDied } from "agent-sidecar-client";

const ASKS = ["host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit"];
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

let client;
const asked = [];
const cancels = new Map();

/** Answers requests of one method with what the examiner says. */
const handler = (method) => (params) =>
  new Promise((resolve, reject) => {
    asked.push({ resolve, reject });
    say({ asked: asked.length, method, params });
  });

async function open(number, params) {
  const options = { features: {}, ...params?.initializationOptions?.sidecar };
  const handlers = Object.fromEntries(ASKS.map((method) => [method, handler(method)]));
  client = await SidecarClient.start({ command: process.env.AGENT_SIDECAR, options, host: { handlers } });
  client.onEvent((event) => say({ event }));
  for (const method of ["session/updated", "session/closed"]) {
    client.onNotification(method, (params) => say({ notified: method, params }));
  }
  void client.ended.then((death) => say({ ended: death.exitCode }));
  say({ answer: number, result: client.server });
}

/** One call, by the method that a user would take. */
async function work(method, params, signal) {
  if (method === "createSession") return (await client.createSession(params)).opened;
  if (method === "resumeSession") {
    const { sessionId, ...resumption } = params;
    return (await client.resumeSession(sessionId, resumption)).opened;
  }
  if (method === "run" && params.wait !== "accepted") {
    const { input, ...settings } = params;
    return client.run(input, { ...settings, signal }).result();
  }
  return client.request(method, params, { signal });
}

async function call(number, method, params = {}) {
  const cancel = new AbortController();
  cancels.set(number, cancel);
  try {
    say({ answer: number, result: await work(method, params, cancel.signal) });
  } catch (error) {
    if (error instanceof SidecarDied) return; // `ended` says so
    if (!(error instanceof RpcError)) throw error;
    say({ answer: number, error: { code: error.code, message: error.message, data: error.data } });
  }
}

async function act(todo) {
  if (todo.method === "initialize") await open(todo.call, todo.params);
  else if (todo.call !== undefined) void call(todo.call, todo.method, todo.params);
  else if (todo.cancel !== undefined) cancels.get(todo.cancel).abort();
  else if (todo.end) await client.close();
  else if (todo.reply !== undefined) {
    const { resolve, reject } = asked[todo.reply - 1];
    if (todo.error) reject(new RpcError(todo.error.code, todo.error.message, todo.error.data));
    else resolve(todo.result);
  } // `start` waits for `initialize`; `initialized` is sent by the client itself
}

for await (const line of createInterface({ input: process.stdin })) await act(JSON.parse(line));
