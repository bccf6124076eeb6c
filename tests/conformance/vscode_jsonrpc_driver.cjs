// A driver of plain vscode-jsonrpc, the library under every VS Code language client: nothing of ours is in it.
// NODE_PATH=… agent-sidecar conformance -- node tests/conformance/vscode_jsonrpc_driver.cjs
"use strict";

const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");
const rpc = require("vscode-jsonrpc/node");

const ASKS = ["host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit"];
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

let connection;
let ended;
const asked = [];
const cancels = new Map();

function start() {
  const sidecar = spawn(process.env.AGENT_SIDECAR, ["serve", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
  connection = rpc.createMessageConnection(sidecar.stdout, sidecar.stdin);
  connection.onNotification("run/event", (event) => say({ event }));
  connection.onUnhandledNotification(({ method, params }) => say({ notified: method, params }));
  for (const method of ASKS) connection.onRequest(method, (params) => ask(method, params));
  connection.onError(([error]) => process.stderr.write(`${error}\n`));
  connection.listen();
  ended = new Promise((resolve) => sidecar.on("close", resolve)).then((code) => say({ ended: code }));
}

function ask(method, params) {
  return new Promise((resolve) => {
    asked.push(resolve);
    say({ asked: asked.length, method, params });
  });
}

async function call(number, method, params) {
  const source = new rpc.CancellationTokenSource();
  cancels.set(number, source);
  try {
    const given = params === undefined ? [] : [rpc.ParameterStructures.byName, params];
    say({ answer: number, result: await connection.sendRequest(method, ...given, source.token) });
  } catch (error) {
    if (error.code === rpc.ErrorCodes.PendingResponseRejected) return; // the sidecar has died
    say({ answer: number, error: { code: error.code, message: error.message, data: error.data } });
  }
}

async function end() {
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  await ended;
}

function act(todo) {
  if (todo.start) start();
  else if (todo.call !== undefined) void call(todo.call, todo.method, todo.params);
  else if (todo.notify !== undefined) void connection.sendNotification(todo.notify, todo.params ?? {});
  else if (todo.cancel !== undefined) cancels.get(todo.cancel).cancel();
  else if (todo.end) void end();
  else if (todo.error) asked[todo.reply - 1](new rpc.ResponseError(todo.error.code, todo.error.message, todo.error.data));
  else asked[todo.reply - 1](todo.result);
}

createInterface({ input: process.stdin }).on("line", (line) => act(JSON.parse(line)));
