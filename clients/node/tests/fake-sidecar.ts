// A process that greets like a sidecar and does what each method's name says: for what a real one never does.
import { createMessageConnection, ResponseError, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

const {
  FAKE_NAME = "agent-sidecar",
  FAKE_VERSION = "0.1.0",
  FAKE_PROTOCOL = "1",
  FAKE_STAYS,
  FAKE_RESUME,
} = process.env;

const event = (runId: string, seq: number, type: string, data: object, more = {}) => ({
  sessionId: "s",
  runId,
  seq,
  epoch: "e",
  time: "t",
  type,
  data,
  ...more,
});

const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout),
);

connection.onRequest("initialize", () => ({
  capabilities: { experimental: { sidecar: { protocolVersion: Number(FAKE_PROTOCOL), features: {}, limits: {} } } },
  serverInfo: { name: FAKE_NAME, version: FAKE_VERSION },
}));

/** Sends the host a request without params, and tells how it was answered. */
connection.onRequest("x-askHost", async ({ method }: { method: string }) => {
  try {
    return await connection.sendRequest(method);
  } catch (error) {
    const { code, message } = error as ResponseError<unknown>;
    return code === -32601 ? { code } : { code, message };
  }
});

/** Says much, and ends in the middle of a message. */
connection.onRequest("x-die", () => {
  const frames = Array.from({ length: 500 }, (_, index) => {
    const params = event("r", index + 1, "message.started", {});
    const body = JSON.stringify({ jsonrpc: "2.0", method: "run/event", params });
    return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  });
  process.stdout.write(`${frames.join("")}Content-Length: 1000\r\n\r\n{"jsonrpc"`, () => process.exit(7));
  return new Promise(() => {});
});

const session = { sessionId: "s", epoch: "e2" };
connection.onRequest("createSession", () => ({ session, lastSeq: 3 }));

let resumptions = 0;

/** Keeps no event before the tenth; before that, "hangs" never answers, and "locked" refuses twice. */
connection.onRequest("resumeSession", ({ replayFrom }: { replayFrom?: { seq: number } }) => {
  resumptions++;
  if (FAKE_RESUME === "hangs") return new Promise(() => {});
  if (FAKE_RESUME === "locked" && resumptions < 3) {
    return new ResponseError(4043, "another process has it", { kind: "sessionLocked", retryable: true });
  }
  return replayFrom !== undefined && replayFrom.seq < 10
    ? new ResponseError(4008, "too old a cursor", { kind: "cursorExpired", retryable: false })
    : { session, lastSeq: 10 };
});

/** A run with as many events as its input says; or one that every process dies on, or only the first is ended in. */
connection.onRequest("run", async ({ runId, input }: { runId: string; input: string }) => {
  if (input === "dies") process.exit(9);
  if (input === "is ended" && resumptions === 0) {
    setTimeout(() => process.exit(0), 50);
    throw new ResponseError(-32802, "the sidecar is shut down", { kind: "serverCancelled", retryable: true });
  }
  for (let sub = 1; sub <= Number(input); sub++) {
    const delta = { messageId: "m", contentIndex: 0, text: `${sub} `.padEnd(1_000, "x") };
    await connection.sendNotification("run/event", event(runId, 1, "message.delta", delta, { sub, ephemeral: true }));
  }
  await connection.sendNotification("run/event", event(runId, 2, "run.completed", {}));
  return { runId, status: "completed", lastSeq: 2 };
});

connection.onRequest("shutdown", () => null);
if (FAKE_STAYS === undefined) connection.onNotification("exit", () => process.exit(0));
else setInterval(() => {}, 1_000_000);
connection.listen();
