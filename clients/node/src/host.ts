// What a host brings along for its sidecar: tools, context providers, and whom to ask. Answers nothing itself.
import type { HandlerContext, RequestHandler } from "./connection.js";
import type { ApprovalAnswer } from "./consent.js";
import type {
  AfterRunParams,
  AfterRunResult,
  BeforeRunParams,
  BeforeRunResult,
  EditorContextParams,
  EditorContextResult,
  ElicitParams,
  ElicitResult,
  RequestApprovalParams,
} from "./contract.js";
import type { Tool } from "./tools.js";

type Answer<T> = T | undefined | void | Promise<T | undefined | void>;

/** A context provider of the host's: one of the two methods, or both. */
export interface HostProvider {
  /** Gives what is to be added before the model is called, put in place of what is there, or remembered. */
  beforeRun?(params: BeforeRunParams, context: HandlerContext): Answer<BeforeRunResult>;
  /** Gives what is to be remembered of the run's `response`, or of its `error`. */
  afterRun?(params: AfterRunParams, context: HandlerContext): Answer<AfterRunResult>;
}

/** Everything that the sidecar may ask of this process. What is left out, the sidecar is told not to ask for. */
export interface Host {
  /** Tools that answer in every session, also where an agent or a provider of the host's names them. */
  readonly tools?: readonly Tool[];
  /** `sourceId` → the provider. A session has it by an entry `{ type: "host", sourceId }`. */
  readonly providers?: Readonly<Record<string, HostProvider>>;
  /** Asked before a call that needs consent. Show the whole call: the model wrote it. A failure denies. */
  readonly approve?: (request: RequestApprovalParams, context: HandlerContext) => Answer<ApprovalAnswer>;
  /** Asked where a tool or a provider has a question for the user. Nothing: it was closed without an answer. */
  readonly elicit?: (request: ElicitParams, context: HandlerContext) => Answer<ElicitResult>;
  /** The kinds of question that `elicit` can ask. Default: both. */
  readonly elicitModes?: readonly ElicitParams["mode"][];
  /** Asked what the user has before them, in runs of agents with the provider `editor_context`. */
  readonly editorContext?: (params: EditorContextParams, context: HandlerContext) => Answer<EditorContextResult>;
  /** Method → what answers it, for requests that this client does not know. They come before all of the above. */
  readonly handlers?: Readonly<Record<string, RequestHandler>>;
}
