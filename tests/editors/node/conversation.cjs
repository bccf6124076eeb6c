// A whole conversation by vscode-jsonrpc, the library under every VS Code extension. Prints one JSON object a step.
// usage: node conversation.cjs COMMAND ARGUMENT…, with the sidecar's command; the package is found by NODE_PATH.
"use strict";

const { spawn } = require("node:child_process");
const rpc = require("vscode-jsonrpc/node");

const [command, ...parameters] = process.argv.slice(2);
const say = (step, value) => console.log(JSON.stringify({ step, value }));

/** One sidecar process and the connection to it. */
class Sidecar {
  constructor() {
    this.process = spawn(command, parameters, { stdio: ["pipe", "pipe", "inherit"] });
    this.exit = new Promise((resolve) => this.process.on("exit", (code, signal) => resolve(code ?? signal)));
    this.events = [];
    this.messages = [];
    this.unexpected = [];
    this.watchers = new Set();
    this.connection = rpc.createMessageConnection(this.process.stdout, this.process.stdin);
    this.connection.onNotification("run/event", (event) => this.take(this.events, event));
    this.connection.onNotification("window/showMessage", (message) => this.take(this.messages, message));
    this.connection.onRequest("window/workDoneProgress/create", () => null);
    this.asked = [];
    this.connection.onRequest("host/requestApproval", ({ toolCall, options }) => {
      this.asked.push(["approve", toolCall.arguments]);
      return { outcome: "selected", optionId: options.find((option) => option.kind === "allowOnce").optionId };
    });
    this.connection.onRequest("host/callTool", ({ arguments: given }) => {
      this.asked.push(["call", given]);
      return { content: `${given.key} is 饺子` };
    });
    this.connection.onUnhandledNotification((message) => this.unexpected.push(message.method));
    this.connection.onError(([error]) => this.unexpected.push(String(error)));
    this.connection.listen();
  }

  take(list, item) {
    list.push(item);
    for (const watch of [...this.watchers]) watch();
  }

  /** Resolves as soon as `condition` gives something for what has come. */
  until(condition) {
    return new Promise((resolve) => {
      const watch = () => {
        const found = condition();
        if (found) {
          this.watchers.delete(watch);
          resolve(found);
        }
      };
      this.watchers.add(watch);
      watch();
    });
  }

  ask(method, ...params) {
    return this.connection.sendRequest(method, ...params);
  }

  initialize() {
    const features = { hostTools: {}, approvals: {} };
    return this.ask("initialize", {
      processId: process.pid,
      rootUri: null,
      capabilities: { window: { workDoneProgress: true } },
      initializationOptions: { sidecar: { protocolVersions: [1], clientId: "vscode-jsonrpc", features } },
    });
  }

  text(runId) {
    const deltas = this.events.filter((event) => event.runId === runId && event.type === "message.delta");
    return deltas.map((event) => event.data.text).join("");
  }

  durable() {
    return this.events.filter((event) => !event.ephemeral).map(({ prevSeq, _meta, ...event }) => event);
  }
}

async function main() {
  const first = new Sidecar();
  const { capabilities } = await first.initialize();
  await first.connection.sendNotification("initialized", {});
  await first.connection.sendNotification("$/setTrace", { value: "off" });
  await first.connection.sendNotification("workspace/didChangeConfiguration", { settings: {} });
  say("initialize", capabilities.experimental.sidecar);

  const schema = await first.ask("getSchema"); // no params at all
  say("getSchema", Object.keys(schema));
  say("unknownMethod", await first.ask("noSuchMethod").catch((error) => error.code));

  const { session } = await first.ask("createSession", { sessionId: "node" });
  say("createSession", session.sessionId);

  const result = await first.ask("run", { sessionId: "node", runId: "r1", input: "hello" });
  say("run", { text: result.text, streamed: first.text("r1"), last: first.events.at(-1).type });

  // A tool of the host's own, which the user has to allow.
  const inputSchema = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
  const lookup = { name: "lookup", description: "Looks it up", inputSchema, approvalMode: "always_require" };
  await first.ask("createSession", { sessionId: "tools", tools: [lookup] });
  const looked = await first.ask("run", { sessionId: "tools", input: process.env.LOOKS_UP });
  say("tool", { text: looked.text, asked: first.asked });

  // `$/cancelRequest`, as the library sends it for a token.
  const source = new rpc.CancellationTokenSource();
  const story = first.ask("run", { sessionId: "node", runId: "r2", input: process.env.STALLS }, source.token);
  await first.until(() => first.text("r2").includes("Once upon a time"));
  const state = await first.ask("getState", { sessionId: "node" });
  say("getState", { status: state.session.status, runId: state.activeRun.runId });
  source.cancel();
  const cancelled = await story;
  say("cancel", { status: cancelled.status, text: cancelled.text });

  // The same through an editor's command, whose user cancels the progress.
  const progress = [];
  const token = "token of the client";
  first.connection.onProgress(new rpc.ProgressType(), token, (value) => first.take(progress, value));
  const told = first.ask("workspace/executeCommand", {
    command: "sidecar.run",
    arguments: [process.env.STALLS],
    workDoneToken: token,
  });
  await first.until(() => progress.some((value) => value.message?.startsWith("Once upon")));
  await first.connection.sendNotification("window/workDoneProgress/cancel", { token });
  say("command", { status: (await told).status, kinds: progress.map((value) => value.kind) });
  say("messages", first.messages);

  // The process dies in the middle of a run; another one takes the session over and replays it.
  const lost = first.ask("run", { sessionId: "node", runId: "r3", input: process.env.STALLS }).catch(() => "lost");
  await first.until(() => first.text("r3").includes("Once upon a time"));
  const before = first.durable().filter((event) => event.sessionId === "node");
  first.process.kill("SIGKILL");
  say("killed", await first.exit);
  first.connection.dispose();
  say("lost", await lost);

  const second = new Sidecar();
  await second.initialize();
  const resumed = await second.ask("resumeSession", { sessionId: "node", replayFrom: { type: "start" } });
  await second.until(() => second.durable().length >= resumed.lastSeq);
  const after = second.durable();
  say("resume", {
    interrupted: resumed.recovered.interruptedRuns,
    sameEvents: JSON.stringify(after.slice(0, before.length)) === JSON.stringify(before),
    added: after.slice(before.length).map((event) => [event.type, event.data.status]),
  });
  say("goesOn", (await second.ask("run", { sessionId: "node", input: "again" })).text);

  say("shutdown", await second.ask("shutdown"));
  say("afterShutdown", await second.ask("getState").catch((error) => error.code));
  await second.connection.sendNotification("exit");
  say("exit", await second.exit);
  say("unexpected", [...first.unexpected, ...second.unexpected]);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
