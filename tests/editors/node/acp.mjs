// A whole conversation by the TypeScript SDK of ACP. Prints one JSON object a step.
// usage: node acp.mjs MODULE COMMAND ARGUMENT…, with the SDK's main module and the agent's command.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [module, command, ...parameters] = process.argv.slice(2);
const acp = await import(pathToFileURL(module));
const { initialize, session } = acp.methods.agent;
const say = (step, value) => console.log(JSON.stringify({ step, value }));
const text = (words) => [{ type: "text", text: words }];
const cwd = process.cwd();

/** One agent process; `talk` gets the SDK's context and what the agent has shown. */
async function attach(talk) {
  const child = spawn(command, parameters, { stdio: ["pipe", "pipe", "inherit"] });
  const exit = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const seen = { updates: [], permissions: [], watchers: new Set() };
  seen.text = (kind = "agent_message_chunk") =>
    seen.updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
  seen.until = (condition) =>
    new Promise((resolve) => {
      const watch = () => condition() && (seen.watchers.delete(watch), resolve());
      seen.watchers.add(watch);
      watch();
    });
  const editor = acp
    .client({ name: "test" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      for (const watch of [...seen.watchers]) watch();
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.permissions.push(params.toolCall.kind);
      const allow = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: allow.optionId } };
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await editor.connectWith(stream, async (agent) => {
    const answer = await agent.request(initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    await talk(agent, seen, answer);
  });
  child.stdin.destroy();
  say("exit", await exit);
}

let sessionId;

await attach(async (agent, seen, answer) => {
  say("initialize", answer.protocolVersion);
  ({ sessionId } = await agent.request(session.new, { cwd, mcpServers: [] }));

  const hello = await agent.request(session.prompt, { sessionId, prompt: text("hello") });
  say("prompt", { reason: hello.stopReason, text: seen.text() });

  await agent.request(session.prompt, { sessionId, prompt: text("remove it") });
  say("permission", { asked: seen.permissions, text: seen.text().endsWith("removed a.txt") });

  const abort = new AbortController();
  const prompt = { sessionId, prompt: text("tell me a story") };
  const first = agent.request(session.prompt, prompt, { cancellationSignal: abort.signal });
  await seen.until(() => seen.text().endsWith("Once upon a time"));
  say("busy", await agent.request(session.prompt, prompt).catch((error) => error.data.kind));
  abort.abort();
  say("cancelRequest", (await first).stopReason);

  const second = agent.request(session.prompt, prompt);
  await seen.until(() => seen.text().endsWith("Once upon a timeOnce upon a time"));
  await agent.notify(session.cancel, { sessionId });
  say("cancel", (await second).stopReason);

  say("state", (await agent.request("_sidecar/getState", { sessionId })).session.status);
});

await attach(async (agent, seen) => {
  say("list", (await agent.request(session.list, { cwd })).sessions.map((info) => info.sessionId === sessionId));
  await agent.request(session.load, { sessionId, cwd, mcpServers: [] });
  say("load", { user: seen.text("user_message_chunk"), calls: seen.updates.filter((u) => u.sessionUpdate === "tool_call").length });
  await agent.request(session.close, { sessionId });
  await agent.request(session.resume, { sessionId, cwd, mcpServers: [] });
  say("resume", (await agent.request(session.prompt, { sessionId, prompt: text("again") })).stopReason);
  await agent.request(session.delete, { sessionId });
  say("deleted", (await agent.request(session.list, {})).sessions.length);
});
process.exit(0);
