// The client: one sidecar, its sessions, and where each event goes. Sessions and runs have files of their own.
import { randomUUID } from "node:crypto";

import { declarations, HostAnswers } from "./answers.js";
import type { Methods, ServerNotifications, SidecarOptions } from "./contract.js";
import { findSidecar } from "./discovery.js";
import { SidecarDied } from "./errors.js";
import type { EventListener, SidecarEvent } from "./events.js";
import type { Trace } from "./frames.js";
import { guarded } from "./guarded.js";
import type { Server } from "./handshake.js";
import type { Host } from "./host.js";
import { Intake } from "./intake.js";
import { launch, type Launch } from "./launch.js";
import { Link } from "./link.js";
import { OpenSessions } from "./open-sessions.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { Session } from "./session.js";
import type { NewSession, NotificationListener, Resumption, RunInput, RunSettings, SessionTool } from "./types.js";

const CLOSE_MS = 5_000;

/** How a sidecar is started. */
export interface StartOptions {
  /** What follows `agent-sidecar serve`. */
  readonly arguments?: readonly string[];
  /** The program `agent-sidecar`, or another one with its first arguments. Default: found on PATH, or fetched. */
  readonly command?: string | readonly string[];
  /** Whether `uvx` or `pipx` may fetch a sidecar where none is installed. Default: true. */
  readonly bootstrap?: boolean;
  /** The sidecar's working directory. Default: this process's. */
  readonly cwd?: string;
  /** Environment variables, on top of this process's. `PYTHONPATH` is removed from both. */
  readonly env?: Readonly<Record<string, string>>;
  /** Paths of the folders that the user works in. */
  readonly workspaceFolders?: readonly string[];
  /** Secrets by the names that the configuration's `api_key_secret` uses. Kept in memory only, and never traced. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Other keys of `initializationOptions.sidecar`: `config`, `optOutEvents`, `maxMessageBytes`, … */
  readonly options?: Omit<SidecarOptions, "secrets">;
  /** What the sidecar may ask of this process: tools, context providers, approvals, questions. */
  readonly host?: Host;
  /**
   * Whether to start a new process where one dies, and to go on in it: sessions are resumed, missed events come once
   * and in order, an unanswered run of a session gets its answer and is never run twice. Other requests that were under
   * way throw `SidecarDied`, because nobody knows whether they were carried out.
   */
  readonly reconnect?: boolean;
  /** Called before each new process, with how the last one ended. */
  readonly onRestart?: (death: SidecarDied) => void;
  /** Called with each line that the sidecar writes to stderr. */
  readonly onStderr?: (line: string) => void;
  /** Shown every message in both directions. */
  readonly trace?: Trace;
  /** Aborting it gives the start up. */
  readonly signal?: AbortSignal;
}

/** One sidecar, ready for requests. Made by `start`; to be closed. */
export class SidecarClient implements AsyncDisposable {
  readonly #answers: HostAnswers;
  readonly #sessions = new OpenSessions();
  readonly #runs = new Runs();
  readonly #eventListeners = new Set<EventListener>();
  readonly #listeners = new Map<string, Set<(params: any) => void>>();
  readonly #intake = new Intake((reading) => this.#link?.connection.process.setReading(reading));
  #link!: Link;

  private constructor(host: Host) {
    this.#answers = new HostAnswers(host);
  }

  /**
   * Finds or fetches a sidecar, starts it, and initializes it.
   *
   * @throws {SidecarNotFound} There is no program to start.
   * @throws {SidecarDied} The program cannot be started, or ended at once.
   * @throws {SidecarIncompatible} It is of a version that this client does not speak.
   * @throws {RpcError} It refused `initialize`.
   */
  static async start(options: StartOptions = {}): Promise<SidecarClient> {
    const { cwd = process.cwd(), secrets, host = {}, reconnect = false, onRestart } = options;
    const env = { ...process.env, ...options.env };
    const command = findSidecar({ command: options.command, bootstrap: options.bootstrap, env, cwd });
    const client = new SidecarClient(host);
    const how: Launch = {
      program: command.program,
      arguments: [...command.arguments, "serve", ...(options.arguments ?? [])],
      cwd,
      env,
      onStderr: options.onStderr,
      options: { ...options.options, ...(secrets && { secrets: { ...secrets } }) },
      features: client.#answers.features,
      workspaceFolders: options.workspaceFolders ?? [],
      handlers: client.#answers.handlers,
      onNotification: (method, params) => client.#notified(method, params),
      trace: options.trace,
    };
    const kept = { sessions: client.#sessions, runs: client.#runs, intake: client.#intake, reconnect, onRestart };
    client.#link = new Link(how, await launch(how, options.signal), kept);
    return client;
  }

  /** What the sidecar told of itself. */
  get server(): Server {
    return this.#link.server;
  }

  /** The process id of the sidecar. */
  get pid(): number {
    return this.#link.connection.process.pid;
  }

  /** Resolves when the process that there is now has ended. */
  get ended(): Promise<SidecarDied> {
    return this.#link.connection.ended;
  }

  /**
   * Sends any request of the contract. Aborting the signal cancels it. Sessions that are opened this way are not
   * resumed by `reconnect`.
   *
   * @throws {RpcError} The sidecar answered with an error.
   * @throws {SidecarDied} It ended before it answered.
   * @throws The signal's reason, where the request was cancelled.
   */
  async request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<Methods[M]["result"]> {
    const result = await this.#link.request(method, params, signal);
    if (method === "closeSession" || method === "deleteSession") {
      this.#forget((params as Methods["closeSession"]["params"]).sessionId);
    }
    return result;
  }

  /** Has `listener` called with every event of every session, replayed ones included. Returns what undoes that. */
  onEvent(listener: EventListener): () => void {
    this.#eventListeners.add(listener);
    return () => void this.#eventListeners.delete(listener);
  }

  /** Has `listener` called with the params of such notifications. Returns what undoes that. */
  onNotification<N extends keyof ServerNotifications>(method: N, listener: NotificationListener<N>): () => void {
    const listeners = this.#listeners.get(method) ?? new Set();
    this.#listeners.set(method, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /**
   * Creates a session, under an id of its own where none is given.
   *
   * @throws {RpcError} It was refused.
   */
  async createSession({ tools, ...params }: NewSession = {}): Promise<Session> {
    const sessionId = params.sessionId ?? randomUUID();
    return this.#open("createSession", sessionId, { ...params, sessionId }, tools);
  }

  /**
   * Opens a stored session. Replayed events go to the listeners of `onEvent`. The host's tools and providers are never
   * stored: give them again.
   *
   * @throws {RpcError} There is no such session, or another process owns it.
   */
  async resumeSession(sessionId: string, { tools, ...params }: Resumption = {}): Promise<Session> {
    return this.#open("resumeSession", sessionId, { ...params, sessionId }, tools);
  }

  /** Removes a session and all that belongs to it; harmless if there is none. */
  async deleteSession(sessionId: string): Promise<void> {
    await this.request("deleteSession", { sessionId });
  }

  /**
   * Starts a run; without a `sessionId` it has a session of its own that ends with it. Iterate over what this returns
   * for the events, or await its `result()`.
   *
   * @throws The signal's reason, where it was aborted before.
   */
  run(input: RunInput, { signal, ...settings }: RunSettings & { readonly sessionId?: string } = {}): Run {
    signal?.throwIfAborted();
    const run = new Run({ ...settings, input, runId: settings.runId ?? randomUUID() }, this.#intake, signal);
    this.#link.begin(run);
    return run;
  }

  /** Shuts the sidecar down in order; ends it at once if that takes longer than `timeoutMs`. May be called twice. */
  async close(timeoutMs = CLOSE_MS): Promise<void> {
    await this.#link.close(timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #open(
    method: "createSession" | "resumeSession",
    sessionId: string,
    params: object,
    tools: readonly SessionTool[] | undefined,
  ): Promise<Session> {
    const whole = { ...params, ...(tools && { tools: declarations(tools) }) };
    const unserve = tools && this.#answers.serve(sessionId, tools);
    const opening = this.#sessions.opening(sessionId, whole);
    try {
      const answer = await this.#link.request(method, whole);
      opening.opened(answer);
      return new Session(this, answer);
    } catch (error) {
      opening.refused();
      unserve?.();
      throw error;
    }
  }

  #forget(sessionId: string): void {
    this.#sessions.closed(sessionId);
    this.#answers.closed(sessionId);
  }

  #notified(method: string, params: any): void {
    if (method === "run/event") {
      const event = params as SidecarEvent;
      this.#sessions.saw(event);
      this.#runs.take(event);
      for (const listener of this.#eventListeners) guarded(() => listener(event));
    }
    for (const listener of this.#listeners.get(method) ?? []) guarded(() => listener(params));
  }
}
