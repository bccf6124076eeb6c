// Reads and writes messages as LSP frames them. Knows no method but the one whose secrets are not to be shown.
import {
  AbstractMessageReader,
  type DataCallback,
  type Disposable,
  type Message,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";

import { guarded } from "./guarded.js";

const HEADER_END = Buffer.from("\r\n\r\n");
const LONGEST_HEADER = 8_192;

/** The method of a notification that the reader itself makes, behind the last message that came. */
export const OUTPUT_ENDED = "$/agent-sidecar-client/outputEnded";

/** Is shown every message, before it is written or handled, and without secrets. What it throws is a warning. */
export type Trace = (direction: "sent" | "received", message: Message) => void;

/**
 * A reader that hands on each message in the moment in which it has come. The library's own decodes later than it
 * reads, and says "closed" before: the last messages of a process that died would be lost.
 */
export class FrameReader extends AbstractMessageReader {
  readonly #input: NodeJS.ReadableStream;
  readonly #onBroken: () => void;
  readonly #trace: Trace | undefined;
  #parts: Buffer[] = [];
  #size = 0;
  #bodyLength: number | undefined;
  #callback: DataCallback = () => {};

  /** @param onBroken Called when what comes is no message, so that nothing after it can be told apart. */
  constructor(input: NodeJS.ReadableStream, onBroken: () => void, trace: Trace | undefined) {
    super();
    this.#input = input;
    this.#onBroken = onBroken;
    this.#trace = trace;
  }

  override listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    const take = (chunk: Buffer) => this.#take(chunk);
    this.#input.on("data", take);
    return { dispose: () => void this.#input.off("data", take) };
  }

  /** Nothing more will come; hands on `OUTPUT_ENDED`. */
  end(): void {
    this.#callback({ jsonrpc: "2.0", method: OUTPUT_ENDED } as Message);
  }

  #take(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#size += chunk.length;
    try {
      for (let body = this.#next(); body !== undefined; body = this.#next()) {
        const message = JSON.parse(body.toString("utf8")) as Message;
        guarded(() => this.#trace?.("received", message));
        this.#callback(message);
      }
    } catch (error) {
      process.emitWarning(`the sidecar wrote what is no message: ${(error as Error).message}`);
      this.#input.removeAllListeners("data").resume();
      this.#onBroken();
    }
  }

  /** The next whole body, if it has come. */
  #next(): Buffer | undefined {
    this.#bodyLength ??= this.#header();
    if (this.#bodyLength === undefined || this.#size < this.#bodyLength) return undefined;
    const body = this.#cut(this.#bodyLength);
    this.#bodyLength = undefined;
    return body;
  }

  #header(): number | undefined {
    const end = this.#joined().indexOf(HEADER_END);
    if (end < 0 ? this.#size > LONGEST_HEADER : end > LONGEST_HEADER) throw new Error("a header without an end");
    if (end < 0) return undefined;
    const text = this.#cut(end + HEADER_END.length).toString("latin1");
    const length = /^content-length:[ \t]*(\d+)[ \t]*$/im.exec(text)?.[1];
    if (length === undefined) throw new Error("a header without Content-Length");
    return Number(length);
  }

  #joined(): Buffer {
    const whole = this.#parts.length === 1 ? this.#parts[0] : undefined;
    const joined = whole ?? Buffer.concat(this.#parts);
    this.#parts = [joined];
    return joined;
  }

  #cut(length: number): Buffer {
    const joined = this.#joined();
    this.#parts = [joined.subarray(length)];
    this.#size -= length;
    return joined.subarray(0, length);
  }
}

/** A writer whose messages can be watched. */
export class FrameWriter extends StreamMessageWriter {
  readonly #trace: Trace | undefined;

  constructor(output: NodeJS.WritableStream, trace: Trace | undefined) {
    super(output);
    this.#trace = trace;
  }

  override write(message: Message): Promise<void> {
    guarded(() => this.#trace?.("sent", withoutSecrets(message)));
    return super.write(message);
  }
}

function withoutSecrets(message: Message & { method?: string; params?: unknown }): Message {
  if (message.method !== "initialize") return message;
  const hidden = (key: string, value: unknown): unknown =>
    key === "secrets" && typeof value === "object" && value !== null
      ? Object.fromEntries(Object.keys(value).map((name) => [name, "…"]))
      : value;
  return JSON.parse(JSON.stringify(message, hidden)) as Message;
}
