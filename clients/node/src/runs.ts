// The runs of one client that have no answer yet, and which of them an event belongs to. Sends nothing.
import type { SidecarEvent } from "./events.js";
import type { Run } from "./run.js";

/** What stands for the session of a one-off run until an event names it. */
const NOT_KNOWN = "";

/** Runs by session and id; a delegated run's events belong to the run that began it all. */
export class Runs {
  readonly #unanswered = new Set<Run>();
  readonly #byKey = new Map<string, Run>();

  /** The runs that wait for an answer, oldest first. */
  get unanswered(): Run[] {
    return [...this.#unanswered];
  }

  add(run: Run): void {
    this.#unanswered.add(run);
    this.#byKey.set(key(run.params.sessionId ?? NOT_KNOWN, run.runId), run);
  }

  remove(run: Run): void {
    this.#unanswered.delete(run);
    for (const [itsKey, itsRun] of this.#byKey) if (itsRun === run) this.#byKey.delete(itsKey);
  }

  /** Hands an event to its run, if that is one of these. */
  take(event: SidecarEvent): void {
    const { sessionId, runId = "", parentRunId = "" } = event;
    const own = key(sessionId, runId);
    const run = this.#byKey.get(own) ?? this.#byKey.get(key(sessionId, parentRunId)) ?? this.#oneOff(runId);
    if (run === undefined) return;
    this.#byKey.set(own, run);
    run.push(event);
  }

  /** The run whose session is not known yet; its first event names it. */
  #oneOff(runId: string): Run | undefined {
    const itsKey = key(NOT_KNOWN, runId);
    const run = this.#byKey.get(itsKey);
    this.#byKey.delete(itsKey);
    return run;
  }
}

function key(sessionId: string, runId: string): string {
  return JSON.stringify([sessionId, runId]);
}
