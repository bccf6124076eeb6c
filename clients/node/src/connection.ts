// JSON-RPC with one sidecar process by vscode-jsonrpc: answers, notifications, reverse requests. Knows no method.
import {
  type CancellationToken,
  CancellationTokenSource,
  createMessageConnection,
  ErrorCodes,
  type MessageConnection,
  ParameterStructures,
  ResponseError,
} from "vscode-jsonrpc/node";

import type { SidecarProcess } from "./child.js";
import { INTERNAL_ERROR, REQUEST_CANCELLED, RpcError, SidecarDied, SidecarError } from "./errors.js";
import { FrameReader, FrameWriter, OUTPUT_ENDED, type Trace } from "./frames.js";
import { guarded, warn } from "./guarded.js";

/** What a handler of a reverse request can do besides answering. */
export interface HandlerContext {
  /** Aborted when the sidecar takes the request back, or ends. */
  readonly signal: AbortSignal;
  /** Sends a notification to the sidecar that asks. */
  readonly notify: (method: string, params: object) => Promise<void>;
}

/** Answers a request of the sidecar: takes its params, returns its result, or throws an `RpcError`. */
export type RequestHandler = (params: any, context: HandlerContext) => unknown;

/** What a connection hands on. */
export interface Conversation {
  /** Method → what answers it. Other requests of the sidecar are answered "method not found". */
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  /** Called with each notification, in the order of arrival. */
  readonly onNotification: (method: string, params: any) => void;
  readonly trace?: Trace | undefined;
}

/** A conversation with one sidecar process. */
export class Connection {
  readonly process: SidecarProcess;
  /** Resolves when the process has ended and its last message has been handled. */
  readonly ended: Promise<SidecarDied>;
  readonly #rpc: MessageConnection;
  readonly #answering = new Set<AbortController>();
  #death: SidecarDied | undefined;

  constructor(process: SidecarProcess, { handlers, onNotification, trace }: Conversation) {
    this.process = process;
    const reader = new FrameReader(process.stdout, () => process.kill(), trace);
    this.#rpc = createMessageConnection(reader, new FrameWriter(process.stdin, trace));
    this.#rpc.onNotification((method, params) => guarded(() => onNotification(method, params ?? {})));
    for (const [method, handler] of handlers) {
      this.#rpc.onRequest(method, (...given: [...params: object[], token: CancellationToken]) => {
        const token = given.pop() as CancellationToken; // the only one, where a request has no params
        return this.#answer(method, handler, given[0] ?? {}, token);
      });
    }
    this.ended = new Promise((resolve) => {
      this.#rpc.onNotification(OUTPUT_ENDED, async () => resolve(this.#end(await process.ended)));
    });
    void process.ended.then(() => reader.end());
    this.#rpc.listen();
  }

  /** Whether the process has ended and its last message has been handled. */
  get hasEnded(): boolean {
    return this.#death !== undefined;
  }

  /**
   * Sends a request in this moment, and waits for its result. Aborting sends `$/cancelRequest`; the answer is waited
   * for all the same, because only it says what was done.
   *
   * @throws {RpcError} The sidecar answered with an error.
   * @throws {SidecarDied} It ended before it answered.
   * @throws The signal's reason, where the sidecar says that the request was cancelled.
   */
  async request(method: string, params: object = {}, signal?: AbortSignal): Promise<any> {
    if (this.#death !== undefined) throw this.#death;
    const source = new CancellationTokenSource();
    const cancel = () => source.cancel();
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await this.#rpc.sendRequest(method, ParameterStructures.byName, params, source.token);
    } catch (error) {
      throw await this.#translated(error, method, signal);
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Sends a notification in this moment; where the process has ended, nothing happens. */
  async notify(method: string, params: object = {}): Promise<void> {
    if (this.#death !== undefined || !this.process.writable) return;
    try {
      await this.#rpc.sendNotification(method, ParameterStructures.byName, params);
    } catch {
      // the process is ending: that is told by `ended`
    }
  }

  #end(death: SidecarDied): SidecarDied {
    this.#death = death;
    this.#rpc.dispose();
    for (const answer of this.#answering) answer.abort(death);
    return death;
  }

  async #answer(method: string, handler: RequestHandler, params: object, token: CancellationToken): Promise<unknown> {
    const controller = new AbortController();
    const takeBack = () => controller.abort();
    if (token.isCancellationRequested) takeBack();
    const watching = token.onCancellationRequested(takeBack);
    this.#answering.add(controller);
    try {
      const context = { signal: controller.signal, notify: this.notify.bind(this) };
      return await handler(params, context);
    } catch (error) {
      if (error instanceof RpcError) return new ResponseError(error.code, error.message, error.data);
      if (controller.signal.aborted) return new ResponseError(REQUEST_CANCELLED, "the request was cancelled");
      warn(error); // whose text is not for the model
      return new ResponseError(INTERNAL_ERROR, `the host's handler of ${method} failed`);
    } finally {
      this.#answering.delete(controller);
      watching.dispose();
    }
  }

  async #translated(error: unknown, method: string, signal: AbortSignal | undefined): Promise<unknown> {
    if (!(error instanceof ResponseError)) return this.process.writable ? error : this.ended;
    const { code, message, data } = error as ResponseError<Record<string, unknown> | undefined>;
    if (code === ErrorCodes.PendingResponseRejected) return this.ended;
    if (code === ErrorCodes.MessageWriteError) {
      return this.process.writable ? new SidecarError(`${method} cannot be sent: ${message}`) : this.ended;
    }
    if (code === REQUEST_CANCELLED && signal?.aborted) return signal.reason;
    return new RpcError(code, message, data ?? {});
  }
}
