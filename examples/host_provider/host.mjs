// A host with one tool, one context provider and a person to ask. One run for each argument; Node 20.11, nothing else.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const { PYTHONPATH, ...env } = process.env;
const sidecar = spawn("agent-sidecar", ["serve", "--store", "memory"], {
  cwd: import.meta.dirname,
  env,
  stdio: ["pipe", "pipe", "inherit"],
});
const person = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tickets = [];

// What the sidecar may ask. Each takes params and gives a result; what it throws is answered as an error.
const serves = {
  "host/beforeRun": ({ state }) => ({ instructions: `You help Ada; visit ${(state.visits ?? 0) + 1}.` }),

  "host/afterRun": ({ state, error }) => (error ? {} : { state: { visits: (state.visits ?? 0) + 1 } }),

  "host/callTool": ({ name, arguments: { title } }) => {
    if (name !== "open_ticket") return { content: `There is no tool ${name}.`, isError: true };
    return { content: `Ticket ${tickets.push(title)} is open: ${title}` };
  },

  "host/requestApproval": async ({ title, toolCall, options }) => {
    process.stderr.write(`${title} ${visible(toolCall.arguments)} [y/N] `);
    const { value } = await person.next(); // undefined at the end of the input: that is no consent
    const kind = value === "y" ? "allowOnce" : "rejectOnce";
    return { outcome: "selected", optionId: options.find((option) => option.kind === kind).optionId };
  },
};

/** The model wrote the arguments: nothing in them may hide, or move the cursor. */
function visible(value) {
  return JSON.stringify(value).replace(/[^ -~]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

const waiting = new Map();

function send(message) {
  sidecar.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function request(method, params) {
  return new Promise((resolve, reject) => {
    const id = waiting.size + 1;
    waiting.set(id, { resolve, reject });
    send({ id, method, params });
  });
}

async function serve({ id, method, params }) {
  if (!Object.hasOwn(serves, method)) {
    return send({ id, error: { code: -32601, message: `${method} is not served here` } });
  }
  try {
    send({ id, result: await serves[method](params) });
  } catch {
    send({ id, error: { code: -32603, message: `${method} failed` } });
  }
}

createInterface({ input: sidecar.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if ("method" in message) {
    if ("id" in message) serve(message); // a request; the rest are notifications, such as run/event
    return;
  }
  const { resolve, reject } = waiting.get(message.id);
  if (message.error) reject(new Error(message.error.message));
  else resolve(message.result);
});
for (const gone of ["error", "exit"]) {
  sidecar.on(gone, (why) => waiting.forEach(({ reject }) => reject(new Error(`the sidecar has gone: ${why}`))));
}
sidecar.stdin.on("error", () => {}); // it has gone, and that was told above

try {
  await request("initialize", {
    processId: process.pid,
    initializationOptions: { sidecar: { protocolVersions: [1], features: { approvals: {} } } },
  });
  const { session } = await request("createSession", {
    model: "scripted:model.toml",
    tools: [
      {
        name: "open_ticket",
        description: "Open a ticket.",
        inputSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
        approvalMode: "always_require",
      },
    ],
    contextProviders: [{ type: "host", sourceId: "desk" }],
  });
  for (const input of process.argv.slice(2)) {
    console.log((await request("run", { sessionId: session.sessionId, input })).text);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  sidecar.stdin.end(); // the sidecar finishes, and exits
  process.stdin.destroy();
}
