// The line to a sidecar, kept up over the death of its process: sessions resumed, unanswered runs sent again.
import { setTimeout as sleep } from "node:timers/promises";

import type { Connection } from "./connection.js";
import type { ResumeSessionParams, RunResult } from "./contract.js";
import { RpcError, SidecarDied, SidecarError } from "./errors.js";
import type { Server } from "./handshake.js";
import type { Intake } from "./intake.js";
import { type Launch, launch, type Launched } from "./launch.js";
import type { OpenSessions } from "./open-sessions.js";
import type { Run } from "./run.js";
import type { Runs } from "./runs.js";

/** Processes that are started, one after the other, before it is given up. */
const ATTEMPTS = 3;
/** Before the second of them; as much more each time. */
const PAUSE_MS = 500;

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
    if (this.#revival !== undefined) await this.#revival;
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
    await this.#revival;
    const { connection } = this;
    const timer = setTimeout(() => connection.process.kill(), timeoutMs);
    try {
      await this.#kept.intake.wait(shutDown(connection));
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
      (result: RunResult) => this.#settle(run, result),
      (error: unknown) => {
        const waits = error instanceof SidecarDied && this.#goesOn && run.params.sessionId !== undefined;
        if (!waits) this.#settle(run, Promise.reject(error)); // else the new process will answer
      },
    );
  }

  #settle(run: Run, answer: RunResult | Promise<RunResult>): void {
    this.#kept.runs.remove(run);
    run.settle(answer);
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

  /** Starts processes until one goes on; where none does, every run that waits for one ends with the reason. */
  async #revive(last: SidecarDied): Promise<void> {
    let death = last;
    for (let attempt = 0; attempt < ATTEMPTS && this.#goesOn; attempt++) {
      try {
        await sleep(PAUSE_MS * attempt, undefined, { signal: this.#closing.signal });
        this.#kept.onRestart?.(death);
        return await this.#kept.intake.wait(this.#startAgain());
      } catch (error) {
        death = error instanceof SidecarDied ? error : new SidecarDied(`no new sidecar could be started: ${error}`);
        this.connection.process.kill();
      }
    }
    this.#given = death;
    for (const run of this.#kept.runs.unanswered) this.#settle(run, Promise.reject(death));
  }

  async #startAgain(): Promise<void> {
    const { sessions, runs } = this.#kept;
    this.#current = await launch(this.#how, this.#closing.signal);
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
      if (refusal !== undefined) this.#settle(run, Promise.reject(refusal));
      else if (sessionId !== undefined || !run.wasSent) this.#send(run);
    }
  }

  async #resume(params: ResumeSessionParams): Promise<void> {
    try {
      await this.connection.request("resumeSession", params);
    } catch (error) {
      if (!(error instanceof RpcError && error.kind === "cursorExpired")) throw error;
      const { replayFrom: _, ...rest } = params;
      this.#kept.sessions.skipTo(await this.connection.request("resumeSession", rest));
    }
  }
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
