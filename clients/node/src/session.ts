// What a client does with one session: run, steer, cancel, look in, answer late, fork. The run itself is in `run`.
import { lateResult } from "./answers.js";
import type {
  CreateSessionResult,
  Json,
  Methods,
  PendingRequest,
  ResolveRequestParams,
  ResumeSessionResult,
  SessionInfo,
} from "./contract.js";
import type { Run } from "./run.js";
import type { RunInput, RunSettings, Sidecar } from "./types.js";

/** The params of a request about a session, which names itself. */
type Params<M extends keyof Methods> = Omit<Methods[M]["params"], "sessionId">;
type Result<M extends keyof Methods> = Promise<Methods[M]["result"]>;

/** A session that is open in the sidecar. Made by `createSession` and `resumeSession` of the client. */
export class Session {
  readonly sessionId: string;
  /** The answer that opened it. */
  readonly opened: CreateSessionResult | ResumeSessionResult;
  readonly #client: Sidecar;

  /** @internal */
  constructor(client: Sidecar, opened: CreateSessionResult | ResumeSessionResult) {
    this.#client = client;
    this.opened = opened;
    this.sessionId = opened.session.sessionId;
  }

  /** The session as it was when it was opened. */
  get info(): SessionInfo {
    return this.opened.session;
  }

  /** What waited for an answer when the session was resumed; `getState` tells what does now. */
  get pendingRequests(): readonly PendingRequest[] {
    return "pendingRequests" in this.opened ? this.opened.pendingRequests : [];
  }

  /** Starts a run. Iterate over it for its events, or await its `result()`. */
  run(input: RunInput, settings: RunSettings = {}): Run {
    return this.#client.run(input, { ...settings, sessionId: this.sessionId });
  }

  /** Stops a run of this session; the active one if none is named. */
  cancel(runId?: string): Result<"cancelRun"> {
    return this.#ask("cancelRun", { ...(runId !== undefined && { runId }) });
  }

  /** Adds input to a run under way; it joins the run's next model call. */
  steer(input: RunInput, runId: string): Result<"steerRun"> {
    return this.#ask("steerRun", { input, expectedRunId: runId });
  }

  /**
   * Answers a request to the host late, also in another process and days later, or in another way than by its handler.
   *
   * @param pending The request, of `pendingRequests` here, in a run's result, or in `getState`.
   * @param answer What the handler would have returned: `allowOnce()`, `reject("…")`, `accept({…})`, a tool's text, …
   * @param kwargs What the run that goes on is to be given; it was stored nowhere.
   * @throws {RangeError} An approval offers no such option.
   */
  async answer(
    pending: PendingRequest,
    answer: Json,
    kwargs: Pick<ResolveRequestParams, "functionInvocationKwargs" | "clientKwargs"> = {},
  ): Result<"resolveRequest"> {
    return this.#ask("resolveRequest", {
      ...kwargs,
      requestId: pending.requestId,
      result: lateResult(pending, answer),
    });
  }

  /** Looks at the session; works during a run. */
  getState(params: Params<"getState"> = {}): Result<"getState"> {
    return this.#ask("getState", params);
  }

  /** A page of the transcript. */
  getHistory(params: Params<"getHistory"> = {}): Result<"getHistory"> {
    return this.#ask("getHistory", params);
  }

  /** A page of stored events after a cursor. */
  getEvents(params: Params<"getEvents">): Result<"getEvents"> {
    return this.#ask("getEvents", params);
  }

  /** What the model saw in each call of a run, or in one of them. */
  explainRun(runId: string, call?: number): Result<"explainRun"> {
    return this.#ask("explainRun", { runId, ...(call !== undefined && { call }) });
  }

  /** The tools that the session's agent has, and whose each is. */
  listTools(): Result<"listTools"> {
    return this.#ask("listTools", {});
  }

  /** Changes settings, labels or state. What is left out stays as it is. */
  update(params: Params<"updateSession">): Result<"updateSession"> {
    return this.#ask("updateSession", params);
  }

  /** Makes a new session out of this one; `resumeSession` opens it here. */
  async fork(params: Params<"forkSession"> = {}): Promise<SessionInfo> {
    return (await this.#ask("forkSession", params)).session;
  }

  /** Closes the session in the sidecar; what is stored stays. */
  async close(): Promise<void> {
    await this.#ask("closeSession", {});
  }

  #ask<M extends keyof Methods>(method: M, params: Params<M>): Result<M> {
    return this.#client.request(method, { ...params, sessionId: this.sessionId } as Methods[M]["params"]);
  }
}
