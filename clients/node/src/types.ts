// Names for shapes of the contract that its own document leaves nameless, or that this client narrows. Types only.
import type {
  CreateSessionParams,
  HostTool,
  Message,
  Methods,
  ResumeSessionParams,
  RunParams,
  ServerNotifications,
} from "./contract.js";
import type { Run } from "./run.js";
import type { Tool } from "./tools.js";

/** A content block of a message. */
export type Block = Message["content"][number];

/** What a run is given: text, content blocks, or messages. */
export type RunInput = RunParams["input"];

/** How a run is to be made. */
export interface RunSettings extends Omit<RunParams, "sessionId" | "input" | "wait"> {
  /** Aborting it cancels the run, which then ends with the status `cancelled`. */
  readonly signal?: AbortSignal;
}

/** A tool of this host, or one that a handler of yours answers. */
export type SessionTool = Tool | HostTool;

/** What a new session is to be. */
export type NewSession = Omit<CreateSessionParams, "tools"> & { readonly tools?: readonly SessionTool[] };

/** How a stored session is opened. */
export type Resumption = Omit<ResumeSessionParams, "sessionId" | "tools"> & { readonly tools?: readonly SessionTool[] };

/** Called with the params of each notification of a kind. */
export type NotificationListener<N extends keyof ServerNotifications> = (params: ServerNotifications[N]) => void;

/** What a session needs of its client. */
export interface Sidecar {
  run(input: RunInput, settings: RunSettings & { readonly sessionId: string }): Run;
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]>;
}
