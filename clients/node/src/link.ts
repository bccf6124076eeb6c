// The line to a sidecar, kept up over the death of its process: sessions resumed, unanswered runs sent again.
import { setTimeout as sleep } from "node:timers/promises";

import type { Connection } from "./connection.js";
import type { ResumeSessionParams, RunResult } from "./contract.js";
import { RpcError, SERVER_CANCELLED, SidecarDied, SidecarError } from "./errors.js";
import { guarded } from "./guarded.js";
import type { Server } from "./handshake.js";
import type { Intake } from "./intake.js";
import { type Launch, launch, type Launched } from "./launch.js";
import type { OpenSessions } from "./open-sessions.js";
import type { Run } from "./run.js";
import type { Runs } from "./runs.js";

/** Processes that are started in a row, none of which holds, before it is given up; also tries to resume a session. */
const ATTEMPTS = 3;
/** Before the second of them; as much more each time. */
const PAUSE_MS = 500;
/** A process that lives so long holds; one that answers a run does, too. */
const HOLDS_MS = 5_000;
/** For a new process to answer `initialize`. */
const GREETING_MS = 60_000;

/** What a link keeps up. */
export interface Kept {
  readonly sessions: OpenSessions;
  readonly runs: Runs;
  readonly intake: Intake;
  /** Whether to start a new process where one dies. */
  readonly reconnect: boolean;
  /** Called before each new process, with how the last one ended. */
  readonly onRestart: ((death: SidecarDied) => void) | undefined;
}

/** One sidecar, in one process after the other. */
export class Link {
  readonly #how: Launch;
  readonly #kept: Kept;
  readonly #closing = new AbortController();
  #current: Launched;
  /** When it was ready, on the clock of `performance`. */
  #readySince = performance.now();
  /** Processes started since the last one that held. */
  #attempts = 0;
  #revival: Promise<void> | undefined;
  #given: SidecarDied | undefined;

  constructor(how: Launch, first: Launched, kept: Kept) {
    this.#how = how;
    this.#kept = kept;
    this.#current = first;
    this.#watch(first.connection);
  }

  get connection(): Connection {
    return this.#current.connection;
  }

  get server(): Server {
    return this.#current.server;
  }

  /** Sends a request as soon as there is a process: in this moment, unless a new one is being started. */
  async request(method: string, params: object, signal?: AbortSignal): Promise<any> {
    signal?.throwIfAborted();
    if (this.#revival !== undefined) await unlessAborted(this.#revival, signal);
    return this.#kept.intake.wait(this.connection.request(method, params, signal));
  }

  /** Sends a run, now or as soon as there is a process, and sees to its answer. */
  begin(run: Run): void {
    this.#kept.runs.add(run);
    if (this.#revival === undefined) this.#send(run);
  }

  /** Shuts the sidecar down in order; ends it at once if that takes too long. May be called twice. */
  async close(timeoutMs: number): Promise<void> {
    this.#closing.abort();
    const timer = setTimeout(() => this.connection.process.kill(), timeoutMs);
    try {
      await this.#revival;
      await this.#kept.intake.wait(shutDown(this.connection));
    } finally {
      clearTimeout(timer);
    }
  }

  get #goesOn(): boolean {
    return this.#kept.reconnect && !this.#closing.signal.aborted && this.#given === undefined;
  }

  #send(run: Run): void {
    run.wasSent = true;
    this.connection.request("run", run.params, run.cancelled).then(
      (result: RunResult) => {
        this.#attempts = 0;
        this.#kept.runs.remove(run);
        run.succeed(result);
      },
      (error: unknown) => {
        const waits = isEnd(error) && this.#goesOn && run.params.sessionId !== undefined;
        if (!waits) this.#fail(run, error); // else the new process will answer
      },
    );
  }

  #fail(run: Run, error: unknown): void {
    this.#kept.runs.remove(run);
    run.fail(error);
  }

  #watch(connection: Connection): void {
    void connection.ended.then((death) => {
      if (!this.#goesOn || this.#revival !== undefined || connection !== this.connection) return;
      this.#revival = this.#revive(death).then(() => {
        this.#revival = undefined;
        if (this.connection.hasEnded) this.#watch(this.connection); // already again
      });
    });
  }

  /** Starts processes until one goes on; where none holds, every run that waits for one ends with the reason. */
  async #revive(last: SidecarDied): Promise<void> {
    let death = last;
    if (performance.now() - this.#readySince >= HOLDS_MS) this.#attempts = 0;
    while (this.#attempts < ATTEMPTS && this.#goesOn) {
      try {
        await this.#pause(this.#attempts++);
        guarded(() => this.#kept.onRestart?.(death));
        await this.#kept.intake.wait(this.#startAgain());
        this.#readySince = performance.now();
        return;
      } catch (error) {
        death = error instanceof SidecarDied ? error : new SidecarDied(`no new sidecar could be started: ${error}`);
        this.connection.process.kill();
      }
    }
    this.#given = death;
    for (const run of this.#kept.runs.unanswered) this.#fail(run, death);
  }

  async #startAgain(): Promise<void> {
    const { sessions, runs } = this.#kept;
    const limit = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(GREETING_MS)]);
    this.#current = await launch(this.#how, limit);
    this.#watch(this.connection);
    const refused = new Map<string, RpcError>();
    for (const params of sessions.resumptions()) {
      try {
        await this.#resume(params);
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        refused.set(params.sessionId, error);
        sessions.closed(params.sessionId);
      }
    }
    for (const run of runs.unanswered) {
      const { sessionId } = run.params;
      const refusal = refused.get(sessionId ?? "");
      if (refusal !== undefined) this.#fail(run, refusal);
      else if (sessionId !== undefined || !run.wasSent) this.#send(run);
    }
  }

  async #resume(params: ResumeSessionParams, vain = 0): Promise<void> {
    try {
      await this.connection.request("resumeSession", params);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      if (error.kind === "cursorExpired") {
        const { replayFrom: _, ...rest } = params;
        this.#kept.sessions.skipTo(await this.connection.request("resumeSession", rest));
      } else if (error.retryable && vain + 1 < ATTEMPTS) {
        await this.#pause(vain + 1);
        await this.#resume(params, vain + 1);
      } else throw error;
    }
  }

  /** Waits the longer, the more attempts were vain. */
  async #pause(vain: number): Promise<void> {
    await sleep(PAUSE_MS * vain, undefined, { signal: this.#closing.signal });
  }
}

/** Whether an error says that the process is gone or about to go. */
function isEnd(error: unknown): boolean {
  return error instanceof SidecarDied || (error instanceof RpcError && error.code === SERVER_CANCELLED);
}

/** Waits for something, but not beyond the abortion of a signal, whose reason is then thrown. */
function unlessAborted(something: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    void something.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
  });
}

async function shutDown(connection: Connection): Promise<void> {
  try {
    await connection.request("shutdown");
    await connection.notify("exit");
  } catch (error) {
    if (!(error instanceof SidecarError)) throw error; // else it is ending already
  }
  connection.process.endInput();
  await connection.ended;
}
