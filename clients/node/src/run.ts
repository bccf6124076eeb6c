// One run in progress, as its caller sees it: events, result, cancel. Who sends it is not known here.
import type { RunParams, RunResult } from "./contract.js";
import type { SidecarEvent } from "./events.js";
import { EventBuffer, type Intake } from "./intake.js";

/** The params of a run that can be sent again: its id is known from the beginning. */
export type SentParams = RunParams & { runId: string };

/**
 * A run in progress: an asynchronous iterable of its events, which ends with its answer.
 *
 * Events wait here until they are read; where too many wait for a loop that is under way, the sidecar's output is read
 * no further. A failed run throws its `RpcError` at the end of the iteration, and from `result()`.
 */
export class Run implements AsyncIterable<SidecarEvent> {
  readonly runId: string;
  /** The params of `run`. */
  readonly params: SentParams;
  /** Aborted by `cancel`. */
  readonly cancelled: AbortSignal;
  readonly #intake: Intake;
  readonly #events: EventBuffer;
  readonly #cancel = new AbortController();
  readonly #answer: Promise<RunResult>;
  #succeed!: (result: RunResult) => void;
  #fail!: (error: unknown) => void;
  /** @internal Whether some process may know of it. */
  wasSent = false;

  /** @internal */
  constructor(params: SentParams, intake: Intake, signal?: AbortSignal) {
    this.runId = params.runId;
    this.params = params;
    this.cancelled = signal === undefined ? this.#cancel.signal : AbortSignal.any([signal, this.#cancel.signal]);
    this.#intake = intake;
    this.#events = new EventBuffer(intake);
    this.#answer = new Promise((resolve, reject) => {
      this.#succeed = resolve;
      this.#fail = reject;
    });
    this.#answer.catch(() => {}); // thrown to whoever iterates or awaits the result
  }

  /** Leaving the loop early cancels nothing and holds up nothing: the rest is kept for a second loop. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SidecarEvent, void, undefined> {
    const leave = this.#events.enter();
    try {
      for (let event = await this.#events.get(); event !== undefined; event = await this.#events.get()) yield event;
    } finally {
      leave();
    }
    await this.#answer;
  }

  /**
   * Waits for the answer to `run`; its `status` says how the run ended.
   *
   * @throws {RpcError} The run failed, or was refused.
   * @throws {SidecarDied} The sidecar ended first.
   */
  result(): Promise<RunResult> {
    return this.#intake.wait(this.#answer);
  }

  /** Stops the run. Its result then comes with the status `cancelled`, unless it had ended already. */
  cancel(): void {
    this.#cancel.abort();
  }

  /** @internal */
  push(event: SidecarEvent): void {
    this.#events.put(event);
  }

  /** @internal The first answer counts. */
  succeed(result: RunResult): void {
    this.#succeed(result);
    this.#events.end();
  }

  /** @internal What took the answer's place. */
  fail(error: unknown): void {
    this.#fail(error);
    this.#events.end();
  }
}
