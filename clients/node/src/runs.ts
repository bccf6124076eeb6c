// The runs of one client that have no answer yet, and which of them an event belongs to. Sends nothing.
import type { SidecarEvent } from "./events.js";
import type { Run } from "./run.js";

/** Runs by their ids; a delegated run's events belong to the run that began it all. */
export class Runs {
  readonly #byId = new Map<string, Run>();

  /** The runs that wait for an answer, oldest first. */
  get unanswered(): Run[] {
    return [...new Set(this.#byId.values())];
  }

  add(run: Run): void {
    this.#byId.set(run.runId, run);
  }

  remove(run: Run): void {
    for (const [runId, itsRun] of this.#byId) if (itsRun === run) this.#byId.delete(runId);
  }

  /** Hands an event to its run, if that is one of these. */
  take(event: SidecarEvent): void {
    const { runId = "", parentRunId = "" } = event;
    const run = this.#byId.get(runId) ?? this.#byId.get(parentRunId);
    if (run === undefined) return;
    this.#byId.set(runId, run);
    run.push(event);
  }
}
