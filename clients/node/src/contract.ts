// The wire contract of agent-sidecar, protocol version 1. Made by `agent-sidecar schema --format typescript`.
// Leave out what you do not say: null is a value. Survive a `type`, `kind` or enum value that is not listed here.

export type Json = any;

/** A run in progress. */
export interface ActiveRun {
  runId: string;
  startedAt: string;
  /** `starting`, `beforeRun`, `model`, `afterRun` or `ending`. */
  stage?: string;
}

/** What a provider put before the model. Tokens are estimated. */
export interface Added {
  instructions?: number;
  messages?: number;
  tools?: number;
  middleware?: number;
  tokens?: number;
}

/** Learn from a run: from its response, or from its failure. */
export interface AfterRunParams {
  sessionId: string;
  runId: string;
  /** Also names it in `resolveRequest`. */
  requestId: string;
  agent: string;
  /** Which of the host's providers is meant. */
  sourceId: string;
  inputMessages: Message[];
  /** What providers before this one have put there, the history among them. */
  contextMessages: Message[];
  instructions: string[];
  /** Names of the tools that there are so far. */
  tools: string[];
  /** The provider's own. */
  state: Json;
  kwargs?: { [key: string]: Json };
  response?: RunResponse;
  error?: RunFailure;
  partialText?: string;
}

/** What a host's provider remembers. */
export interface AfterRunResult {
  /** Replaces the provider's. */
  state?: { [key: string]: Json };
}

/** A row of `listAgents`. */
export interface AgentInfo {
  name: string;
  description?: string;
  model?: string;
}

/** The same in an agent, where an unknown key is refused. */
export interface AgentOptions {
  /** How freely tokens are chosen; 0: the likeliest each time. */
  temperature?: number;
  /** Choose among the likeliest tokens that together have this probability. */
  topP?: number;
  /** Longest answer of one model call. */
  maxOutputTokens?: number;
  /** Whether the model may call tools, must, must not, or must call this one. */
  toolChoice?: "auto" | "none" | "required" | NamedToolChoice;
  /** Model calls in one run. */
  maxTurns?: number;
  /** How much a model reasons; the values are the endpoint's own. */
  reasoningEffort?: string;
  /** Asks the endpoint for the same choices again; few promise it. */
  seed?: number;
  /** Texts at which the answer ends. */
  stop?: string[];
  /** True leaves the conversation with the model service; false keeps it here. */
  store?: boolean;
  /** Whether one answer may hold several tool calls. */
  parallelToolCalls?: boolean;
  /** Added after the agent's and the providers'. */
  instructions?: string;
  /** Instead of the agent's. */
  model?: string;
}

/** An agent. Everything is optional: the empty spec is the default model with no instructions. */
export interface AgentSpec {
  /** What it is called; in a configuration, the name of its table. */
  name?: string;
  /** What it is for, in lists and for agents that call it. */
  description?: string;
  /** What the model is told before everything else. */
  instructions?: string;
  /** `endpoint:model`; default: the configuration's `default_model`. */
  model?: string;
  /** What it may call. */
  tools?: (HostTool | RegisteredTool | AgentTool | PythonTool)[];
  /** What takes part in its runs, in this order. */
  contextProviders?: ProviderEntry[];
  /** What stands around its runs, model calls and tool calls, outermost first. */
  middleware?: MiddlewareEntry[];
  /** How its model calls are made. */
  options?: AgentOptions;
  /** Model calls in one run; default: a limit of the configuration. */
  maxTurns?: number;
  /** In which order providers learn from a run; default: reverse. */
  afterRunOrder?: "reverse" | "forward";
  /** Whether the history is stored with each model call, instead of with the run. */
  perServiceCallHistory?: boolean;
  /** Which tool calls need a person's consent. */
  approvals?: ApprovalConfig;
  /** What happens to a history that grows too long. */
  compaction?: CompactionConfig;
  /** A plug-in that answers in place of model and tools: an installed one by its name, or `module:Class` (configuration files only). */
  implementation?: string;
  /** The plug-in's own configuration. */
  implementationConfig?: { [key: string]: Json };
  /** A ready-made set of providers and tools; false, true, or its parts. */
  harness?: boolean | { [key: string]: Json };
}

/** Another agent, offered as a tool. */
export interface AgentTool {
  type: "agent";
  /** The other agent's name. */
  agent: string;
  /** What the model calls it; default: the agent's name. */
  name?: string;
  /** What the model is told of it; default: the agent's description. */
  description?: string;
  /** The name of its one argument, the task. */
  argName?: string;
  /** What the model is told of that argument. */
  argDescription?: string;
  /** Whether the other agent works on this session's state. */
  propagateSession?: boolean;
  /** Whether each call needs consent. */
  approvalMode?: "never_require" | "always_require";
}

/** How approvals are asked for. */
export interface ApprovalConfig {
  /** `live` asks while the run waits; `inputRequired` ends the run with the question. */
  mode?: "live" | "inputRequired";
  /** How long an answer is waited for, then the call is denied; 0: for ever. */
  timeoutMs?: number;
  /** Decisions that need no question. Deny rules of an earlier file stay. */
  rules?: ApprovalRule[];
}

/** One answer that can be given. */
export interface ApprovalOption {
  optionId: string;
  /** For people. */
  name: string;
  kind: "allowOnce" | "allowSession" | "allowAlways" | "rejectOnce" | "rejectAlways";
}

/** A person's answer. Anything but a known option denies the call. */
export interface ApprovalOutcome {
  /** `selected` or `cancelled`. */
  outcome: string;
  optionId?: string;
  /** For the model, where the call is rejected. */
  message?: string;
}

/** A call that waits for a person's decision. */
export interface ApprovalRequestBlock {
  type?: "approvalRequest";
  requestId: string;
  callId: string;
  name: string;
  arguments: { [key: string]: Json };
}

/** A person's decision on a recorded request. */
export interface ApprovalResponseBlock {
  type?: "approvalResponse";
  requestId: string;
  approved: boolean;
  message?: string;
}

/** What to do with calls that match. */
export interface ApprovalRule {
  /** Deny beats ask, and ask beats allow. */
  decision: "allow" | "deny" | "ask";
  /** The tool's name; `*` and `?` stand for any characters. */
  tool: string;
  /** Argument → the value, or a pattern of it, that it must have. */
  arguments?: { [key: string]: Json };
}

/** A row of `listApprovalRules`. */
export interface ApprovalRuleInfo {
  ruleId: string;
  decision: "allow" | "deny";
  tool: string;
  /** The exact arguments that it counts for; absent: any. */
  arguments?: { [key: string]: Json };
  scope: "session" | "always";
  createdAt: string;
}

/** Add context before the model is called. */
export interface BeforeRunParams {
  sessionId: string;
  runId: string;
  /** Also names it in `resolveRequest`. */
  requestId: string;
  agent: string;
  /** Which of the host's providers is meant. */
  sourceId: string;
  inputMessages: Message[];
  /** What providers before this one have put there, the history among them. */
  contextMessages: Message[];
  instructions: string[];
  /** Names of the tools that there are so far. */
  tools: string[];
  /** The provider's own. */
  state: Json;
  kwargs?: { [key: string]: Json };
}

/** What a host's provider adds. */
export interface BeforeRunResult {
  instructions?: string | string[];
  messages?: Message[];
  tools?: HostTool[];
  /** Replaces the provider's. */
  state?: { [key: string]: Json };
  replace?: Replacement;
}

/** Carry out a tool of the host's. `$/progress` with the `requestId` as its token tells how it gets on. */
export interface CallToolParams {
  sessionId: string;
  runId: string;
  /** Also names it in `resolveRequest`. */
  requestId: string;
  /** The model's id of the call. */
  callId: string;
  name: string;
  arguments: { [key: string]: Json };
  /** The run's `functionInvocationKwargs`. */
  kwargs?: { [key: string]: Json };
  /** After this the answer is not waited for; absent: it is. */
  deadlineMs?: number;
}

/** What a host's tool gave. */
export interface CallToolResult {
  /** Text, images, audio, resources. */
  content: string | (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  structuredContent?: Json;
  isError?: boolean;
}

/** `$/cancelRequest`: string and number ids differ. */
export interface CancelParams {
  id: string | number;
}

/** Ask a run to stop. Answered at once, whatever the run is doing. */
export interface CancelRunParams {
  sessionId?: string;
  /** The run to stop; the session's active run if absent. */
  runId?: string;
  reason?: string;
}

/** `alreadyFinished`: a known run that has ended. `notRunning`: there is none. */
export interface CancelRunResult {
  status: "cancelling" | "alreadyFinished" | "notRunning";
}

/** How a history that grows too long is shortened. */
export interface CompactionConfig {
  /** The name of the way in which it is shortened. */
  strategy: string;
  /** What the model can take in; default: what is known of the model. */
  contextWindowTokens?: number;
  /** What is kept free for the answer. */
  maxOutputTokens?: number;
}

/** One value that a config option can take. */
export interface ConfigChoice {
  value: Json;
  name: string;
  description?: string;
}

/** A setting of a session that the host may show and change. */
export interface ConfigOption {
  id: string;
  name: string;
  value: Json;
  choices?: ConfigChoice[];
}

/** `config/updated`: what can be named in a request has changed. */
export interface ConfigUpdated {
  agents: string[];
  models: string[];
}

/** A document that the run is about. */
export interface ContextItem {
  uri: string;
  range?: { [key: string]: Json };
  version?: number;
  text?: string;
}

/** Make a session. The same id with the same payload gives the same session. */
export interface CreateSessionParams {
  /** Minted by the client, so that the request can be sent again; else by the sidecar. */
  sessionId?: string;
  /** A configured agent's name, or a whole agent; `default` if absent. */
  agent?: string | AgentSpec;
  model?: string;
  mode?: string;
  /** Added after the agent's. */
  instructions?: string;
  cwd?: string;
  additionalDirectories?: string[];
  tools?: HostTool[];
  /** Added after the agent's; an entry with the same `sourceId` replaces the agent's. */
  contextProviders?: ProviderEntry[];
  mcpServers?: { [key: string]: Json }[];
  state?: { [key: string]: Json };
  serviceSessionId?: string;
  /** Kept in memory only, gone with the process. */
  ephemeral?: boolean;
  title?: string;
  metadata?: { [key: string]: Json };
}

/** The session, open in this process. */
export interface CreateSessionResult {
  session: SessionInfo;
  configOptions: ConfigOption[];
  providers: ProviderStatus[];
  lastSeq: number;
  warnings?: WireWarning[];
}

/** Erase what is remembered in a scope: some memories, or `all` of them. */
export interface DeleteMemoriesParams {
  /** The provider type whose memory is meant. */
  type?: "chat_history_memory" | "file_memory";
  /** `file_memory` has one folder a scope: it takes the very keys that its entry names. */
  scope: MemoryScope;
  /** Of `chat_history_memory`; default: the one that its entries have by default. */
  collection?: string;
  /** Ids that are not there, or not in the scope, are passed over. */
  memoryIds?: string[];
  all?: boolean;
}

/** How much was erased. */
export interface DeleteMemoriesResult {
  deleted: number;
}

/** A document that an editor keeps open. */
export interface DocumentState {
  uri: string;
  version?: number;
  languageId?: string;
}

/** Tell what the user has before them. Asked in runs of agents with the provider `editor_context`. */
export interface EditorContextParams {
  sessionId: string;
  runId: string;
  kinds: ("selection" | "visibleDocuments" | "diagnostics")[];
}

/** What was asked for, as far as there is any. */
export interface EditorContextResult {
  selection?: EditorRange;
  visibleDocuments?: EditorRange[];
  diagnostics?: EditorDiagnostic[];
}

/** One of LSP's diagnostics, and where. */
export interface EditorDiagnostic {
  uri: string;
  range?: { [key: string]: Json };
  /** 1: error, 2: warning, 3: information, 4: hint. */
  severity?: number;
  message: string;
}

/** A part of a document: where, as LSP counts, and what stands there. */
export interface EditorRange {
  uri: string;
  range?: { [key: string]: Json };
  text?: string;
}

/** Ask a person a question. */
export interface ElicitParams {
  sessionId: string;
  runId: string;
  /** Also names it in `resolveRequest`. */
  requestId: string;
  mode: "form" | "url";
  message: string;
  requestedSchema?: { [key: string]: Json };
  url?: string;
}

/** A person's answer. */
export interface ElicitResult {
  action: "accept" | "decline" | "cancel";
  content?: Json;
}

/** A resource's contents: exactly one of `text` and `blob` (base64). */
export interface EmbeddedResource {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

/** No fields. */
export interface Empty {
}

/** An error that is part of the conversation. */
export interface ErrorBlock {
  type?: "error";
  kind: string;
  message: string;
}

/** What a program needs to know of an error. Each kind may add fields of its own. */
export interface ErrorData {
  /** Stable discriminator; a key of `KINDS`, or one that a later version added. */
  kind: string;
  retryable: boolean;
  retryAfterMs?: number;
  sessionId?: string;
  runId?: string;
  /** Names this occurrence in the log on stderr. */
  errorId: string;
  detail?: Json;
}

/** An error inside an event. */
export interface EventError {
  kind: string;
  message: string;
}

/** What the model saw in a run's calls. A run under way gives the calls so far. */
export interface ExplainRunParams {
  /** Left out for a one-off run. */
  sessionId?: string;
  runId: string;
  /** Only the call of this `index`. */
  call?: number;
}

/** Every model call of the run, and how long its providers took. */
export interface ExplainRunResult {
  runId: string;
  agent: string;
  calls: ExplainedCall[];
  /** In the order in which their hooks ended. */
  providers: ProviderPhase[];
}

/** One model call. */
export interface ExplainedCall {
  /** From 0, in the order in which the calls began. */
  index: number;
  model: string;
  /** The `sourceId` of the provider that made the call for itself; absent for the run's own calls. */
  by?: string;
  instructions: SeenInstruction[];
  /** In the order in which they were sent. */
  messages: SeenMessage[];
  tools: SeenTool[];
  removed?: Removed[];
  /** Absent while the call is under way, and where it failed before its first word. */
  usage?: Usage;
  startedAt: string;
  firstTokenMs?: number;
  /** So far, while it is under way. */
  durationMs: number;
}

/** The whole session as one JSON document: `{format: "agent-sidecar/session", version: 1, …}`. */
export interface ExportSessionResult {
  document: { [key: string]: Json };
}

/** Make a new session out of a stored one: messages and state are copied, events are not. */
export interface ForkSessionParams {
  sessionId: string;
  /** Keep this run and what came before it. */
  throughRunId?: string;
  /** Keep only what came before this run. */
  beforeRunId?: string;
  newSessionId?: string;
  /** Default: as the source. */
  ephemeral?: boolean;
}

/** A memory that fits. */
export interface FoundMemory {
  /** Of a file: its name. */
  memoryId: string;
  text: string;
  role?: string;
  /** When it was said; absent of a file, whose store keeps no time. */
  createdAt?: string;
  /** All keys of its scope. */
  scope: MemoryScope;
  /** The session that it was said in. */
  sessionId?: string;
  /** At most 1; says nothing across searches. */
  score: number;
  /** How many memories say the same, where it is more than one; the newest stands for them. */
  count?: number;
}

/** A model's wish to call a tool. */
export interface FunctionCallBlock {
  type?: "functionCall";
  callId: string;
  name: string;
  arguments: { [key: string]: Json };
  /** The text, where it was no JSON object; `arguments` is then `{}`. Never sent to a model. */
  rawArguments?: string;
}

/** The one result of a call. */
export interface FunctionResultBlock {
  type?: "functionResult";
  callId: string;
  content: (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  structuredContent?: Json;
  isError?: boolean;
}

/** A page of a session's durable events after a cursor. */
export interface GetEventsParams {
  sessionId: string;
  afterSeq: number;
  /** The epoch that the cursor is of; another one gives status `epochChanged`. */
  epoch?: string;
  limit?: number;
  /** Only events of these types. */
  types?: string[];
  /** Wait this long for the first event, if there is none yet. */
  waitMs?: number;
}

/** Events as they were sent, without `prevSeq`. */
export interface GetEventsResult {
  /** Each a `RunEvent`. */
  events: { [key: string]: Json }[];
  /** The last event of the session; of the page, where there are more. */
  lastSeq: number;
  /** The oldest event that is kept. */
  firstSeq: number;
  hasMore: boolean;
  status: "ok" | "truncated" | "epochChanged";
}

/** A page of a session's transcript, oldest first unless asked otherwise. */
export interface GetHistoryParams {
  sessionId: string;
  cursor?: string;
  limit?: number;
  order?: "asc" | "desc";
  /** Only messages whose source has one of these types or ids. */
  sources?: string[];
}

/** Messages with their attribution, and where the next page begins. */
export interface GetHistoryResult {
  messages: Message[];
  nextCursor?: string;
}

/** Which document to send. */
export interface GetSchemaParams {
  format?: "jsonschema" | "openrpc";
}

/** The whole contract as one document. */
export interface GetSchemaResult {
  schema: Json;
}

/** Look at the sidecar, a session or a run. Small and quick; works during a run. No message bodies. */
export interface GetStateParams {
  sessionId?: string;
  runId?: string;
  /** Default: everything except `documents` and `tools`. */
  include?: ("session" | "run" | "queue" | "providers" | "state" | "usage" | "pending" | "documents" | "tools")[];
  /** Answer `unchanged` if the session still has this revision and no run is active. */
  ifRevision?: number;
}

/** What was asked for, or `unchanged`. */
export interface GetStateResult {
  unchanged?: true;
  server?: ServerState;
  session?: SessionInfo;
  revision?: number;
  epoch?: string;
  lastSeq?: number;
  activeRun?: ActiveRun;
  run?: RunState;
  queue?: QueuedRun[];
  pendingRequests?: PendingRequest[];
  providers?: ProviderState[];
  state?: { [key: string]: Json };
  usage?: Usage;
  documents?: DocumentState[];
  tools?: ToolState[];
}

/** Why a hook failed. */
export interface HookError {
  kind: string;
  message: string;
}

/** A tool that the host carries out. */
export interface HostTool {
  type?: "host";
  /** What the model calls it. */
  name: string;
  /** What people are shown. */
  title?: string;
  /** What the model is told of it. */
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: { [key: string]: Json };
  /** What sort of action it is, for people who are asked. */
  kind?: string;
  /** Whether each call needs consent. */
  approvalMode?: "never_require" | "always_require";
  /** Longest call; default: none. */
  timeoutMs?: number;
}

/** Make a session from an exported document. */
export interface ImportSessionParams {
  document: { [key: string]: Json };
  /** Default: the id in the document. */
  newSessionId?: string;
}

/** LSP's `initializationOptions`; other programs' keys are passed over. */
export interface InitializationOptions {
  sidecar?: SidecarOptions;
}

/** LSP's `initialize`, as far as the sidecar itself reads it. */
export interface InitializeParams {
  processId?: number;
  rootUri?: string;
  workspaceFolders?: { [key: string]: Json }[];
  capabilities?: { [key: string]: Json };
  initializationOptions?: InitializationOptions;
}

/** LSP's answer; `capabilities.experimental.sidecar` is a `SidecarCapabilities`. */
export interface InitializeResult {
  capabilities: { [key: string]: Json };
  serverInfo: { [key: string]: Json };
}

/** The configured agents; `default` is always there. */
export interface ListAgentsResult {
  items: AgentInfo[];
}

/** Standing rules: those of the session, and those that count always. */
export interface ListApprovalRulesResult {
  items: ApprovalRuleInfo[];
}

/** A page of what is remembered in a scope, newest first; files by name. */
export interface ListMemoriesParams {
  /** The provider type whose memory is meant. */
  type?: "chat_history_memory" | "file_memory";
  /** `file_memory` has one folder a scope: it takes the very keys that its entry names. */
  scope: MemoryScope;
  /** Of `chat_history_memory`; default: the one that its entries have by default. */
  collection?: string;
  cursor?: string;
  limit?: number;
}

/** A page of memories. */
export interface ListMemoriesResult {
  items: MemoryItem[];
  nextCursor?: string;
}

/** The models that are known without asking an endpoint. */
export interface ListModelsResult {
  items: ModelInfo[];
}

/** The provider types, each with the JSON Schema of its config. */
export interface ListProvidersResult {
  items: ProviderTypeInfo[];
}

/** A page of stored sessions, newest first. */
export interface ListSessionsParams {
  cursor?: string;
  limit?: number;
  cwd?: string;
  /** Text in title or id. */
  query?: string;
  archived?: boolean;
}

/** Sessions, and where the next page begins. */
export interface ListSessionsResult {
  sessions: SessionInfo[];
  nextCursor?: string;
}

/** The tools of a session; without one, those that are registered. */
export interface ListToolsResult {
  items: ToolInfo[];
}

/** An image or a sound, inline. */
export interface MediaBlock {
  type: "image" | "audio";
  /** Base64. */
  data: string;
  mimeType: string;
}

/** One memory. */
export interface MemoryItem {
  /** Of a file: its name. */
  memoryId: string;
  text: string;
  role?: string;
  /** When it was said; absent of a file, whose store keeps no time. */
  createdAt?: string;
  /** All keys of its scope. */
  scope: MemoryScope;
  /** The session that it was said in. */
  sessionId?: string;
}

/** Whose memory: each key that is given matches exactly. At least one is given, and none is blank. */
export interface MemoryScope {
  applicationId?: string;
  agentId?: string;
  sessionId?: string;
  userId?: string;
}

/** One message of a conversation. Frozen, so that one object can serve the store, the model and the wire. */
export interface Message {
  /** Given by the sidecar where the sender left it out. */
  messageId?: string;
  role: "system" | "user" | "assistant" | "tool";
  /** A plain string is taken as one text block; the sidecar always sends blocks. */
  content: (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  authorName?: string;
  /** Set by the sidecar. */
  source?: Source;
  runId?: string;
  /** RFC 3339, UTC. */
  createdAt?: string;
  metadata?: { [key: string]: Json };
  /** Text of a run that was cut; only in run records. */
  partial?: true;
}

/** A message, whole. */
export interface MessageCompleted {
  messageId: string;
  role: string;
  content: (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
}

/** Ephemeral. Some more text of a message. */
export interface MessageDelta {
  messageId: string;
  contentIndex: number;
  text: string;
}

/** Ephemeral. A message begins. */
export interface MessageStarted {
  messageId: string;
  role: string;
}

/** A middleware: a registered one by its name; in configuration files also one by its import path. */
export interface MiddlewareEntry {
  /** A registered middleware. */
  name?: string;
  /** `module:name`; configuration files only. */
  import?: string;
  /** Its own configuration. */
  config?: Json;
}

/** Another of the session's modes counts. */
export interface ModeChanged {
  mode: string;
  previous?: string;
  by: "host" | "model";
}

/** A row of `listModels`. */
export interface ModelInfo {
  model: string;
  endpoint: string;
  contextSize?: number;
  tools?: boolean;
  images?: boolean;
  default?: boolean;
}

/** Make the model call this tool. */
export interface NamedToolChoice {
  /** The tool's name. */
  name: string;
}

/** A question to the host that waits for its answer. */
export interface PendingRequest {
  requestId: string;
  kind: "approval" | "elicitation" | "hostTool" | "hostProvider";
  runId: string;
  openedAt: string;
  deadline?: string;
  payload: Json;
}

/** One step of a plan. */
export interface PlanStep {
  id: string;
  title: string;
  description?: string;
  status: "pending" | "inProgress" | "completed";
}

/** What the agent means to do: the whole plan, in the place of the one before. */
export interface PlanUpdated {
  entries: PlanStep[];
}

/** A provider's hook ended well; sent also where it added nothing. */
export interface ProviderCompleted {
  sourceId: string;
  type: string;
  phase: "beforeRun" | "afterRun";
  durationMs: number;
  added?: Added;
  removed?: number;
}

/** One context provider of an agent or a session. */
export interface ProviderEntry {
  /** A registered provider type; `listProviders` names them. */
  type: string;
  /** What its contributions are attributed to; default: the type (`in_memory` for `history`). */
  sourceId?: string;
  /** Its key in the session's state; default: the source id. */
  stateKey?: string;
  /** The type's own configuration; `listProviders` has its schema. */
  config?: { [key: string]: Json };
  /** Whether a failure before the run fails the run; default: as the type has it. */
  onError?: "fail" | "warn";
  /** Longest call of one of its hooks; default: a limit of the configuration. */
  timeoutMs?: number;
  /** May run at the same time as its independent neighbours. */
  independent?: boolean;
  /** Where its messages stand; default: as the type has it. */
  position?: "before_input" | "after_input";
}

/** A provider's hook failed. */
export interface ProviderFailed {
  sourceId: string;
  type: string;
  phase: "beforeRun" | "afterRun";
  durationMs: number;
  added?: Added;
  removed?: number;
  error: EventError;
}

/** One hook of a provider. */
export interface ProviderPhase {
  sourceId: string;
  type: string;
  phase: "beforeRun" | "afterRun";
  durationMs: number;
  error?: HookError;
}

/** Ephemeral. A provider tells how far it is. */
export interface ProviderProgress {
  sourceId: string;
  phase: "beforeRun" | "afterRun";
  message?: string;
  data?: Json;
}

/** Ephemeral. A provider's hook begins. */
export interface ProviderStarted {
  sourceId: string;
  type: string;
  phase: "beforeRun" | "afterRun";
}

/** One provider of a session. */
export interface ProviderState {
  sourceId: string;
  type: string;
  status: "ready" | "loading" | "unavailable";
  state?: Json;
  lastBeforeMs?: number;
  lastAfterMs?: number;
  lastError?: string;
}

/** Whether a session's provider can work. */
export interface ProviderStatus {
  sourceId: string;
  type: string;
  status: "ready" | "loading" | "unavailable";
  detail?: string;
}

/** A row of `listProviders`. */
export interface ProviderTypeInfo {
  type: string;
  description: string;
  configSchema: { [key: string]: Json };
}

/** A Python function by import path; configuration files only. */
export interface PythonTool {
  type: "python";
  /** `module:function`. */
  import: string;
  /** Whether each call needs consent. */
  approvalMode?: "never_require" | "always_require";
}

/** A run that waits for its turn. */
export interface QueuedRun {
  runId: string;
  position: number;
}

/** What a model said to itself. */
export interface ReasoningBlock {
  type?: "reasoning";
  text: string;
}

/** The reasoning that went before a message, whole. */
export interface ReasoningCompleted {
  messageId: string;
  text: string;
}

/** Ephemeral. Some more reasoning. */
export interface ReasoningDelta {
  messageId: string;
  text: string;
}

/** What opening the session had to repair. */
export interface Recovered {
  interruptedRuns: string[];
  closedCalls: string[];
  setAside?: Json;
}

/** A tool of the sidecar's own, by its registered name. */
export interface RegisteredTool {
  type: "registered";
  /** Its registered name. */
  name: string;
  /** Whether each call needs consent. */
  approvalMode?: "never_require" | "always_require";
}

/** How many agents there are now, and what was ignored. */
export interface ReloadConfigResult {
  agents: number;
  warnings: WireWarning[];
}

/** Something that was taken from the model, or that something else stands for. */
export interface Removed {
  what: "message" | "tool" | "instruction";
  /** A message's id, a tool's name, or the beginning of an instruction's text. */
  ref: string;
  by: Source;
}

/** What is to stand in place of what others have added; absent parts stay. */
export interface Replacement {
  messages?: Message[];
  instructions?: string[];
  /** Names of the tools that are kept. */
  tools?: string[];
}

/** No replay. */
export interface ReplayNone {
  type?: "none";
}

/** Replay what came after a cursor. */
export interface ReplaySeq {
  type: "seq";
  seq: number;
  epoch: string;
}

/** Replay every event that is kept. */
export interface ReplayStart {
  type: "start";
}

/** Ask a person whether a call may run. */
export interface RequestApprovalParams {
  sessionId: string;
  runId: string;
  /** Also names it in `resolveRequest`. */
  requestId: string;
  title: string;
  description?: string;
  toolCall: ToolCallShown;
  options: ApprovalOption[];
  deadlineMs?: number;
}

/** The host is asked something. */
export interface RequestOpened {
  requestId: string;
  kind: "approval" | "elicitation" | "hostTool" | "hostProvider";
  /** The params of the request, without `kwargs`; of a provider's hook without the messages. */
  payload: Json;
  deadline?: string;
}

/** A request to the host is open no longer. */
export interface RequestResolved {
  requestId: string;
  /** `completed`, `failed`, `approved`, `denied`, `accept`, `decline` or `cancel`. */
  outcome: string;
  by: "client" | "timeout" | "cancel" | "disconnect" | "rule";
}

/** Answer a request to the host in another way than by its JSON-RPC answer, also after a reconnect or restart. */
export interface ResolveRequestParams {
  sessionId?: string;
  requestId: string;
  /** What the request itself would have been answered. */
  result?: Json;
  /** Instead: the host could not. It denies an approval. */
  error?: { [key: string]: Json };
  /** For the run that goes on from it. */
  functionInvocationKwargs?: { [key: string]: Json };
  clientKwargs?: { [key: string]: Json };
}

/** `runId`: the run that goes on, where this was the last decision that a parked run waited for. */
export interface ResolveRequestResult {
  status: "resolved" | "alreadyResolved" | "unknown";
  runId?: string;
}

/** A resource with its contents. */
export interface ResourceBlock {
  type?: "resource";
  resource: EmbeddedResource;
}

/** A pointer to something; never opened or fetched by the sidecar. */
export interface ResourceLinkBlock {
  type?: "resource_link";
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
}

/** Open a stored session in this process, and replay. */
export interface ResumeSessionParams {
  sessionId: string;
  replayFrom?: ReplayNone | ReplayStart | ReplaySeq;
  tools?: HostTool[];
  contextProviders?: ProviderEntry[];
  mcpServers?: { [key: string]: Json }[];
}

/** The session, open in this process; replayed events follow. */
export interface ResumeSessionResult {
  session: SessionInfo;
  configOptions: ConfigOption[];
  providers: ProviderStatus[];
  activeRun?: ActiveRun;
  pendingRequests: PendingRequest[];
  lastSeq: number;
  /** Some of the events asked for are no longer kept. */
  truncated: boolean;
  recovered?: Recovered;
  warnings?: WireWarning[];
}

/** Forget a standing rule. One that is not there is forgotten already. */
export interface RevokeApprovalRuleParams {
  ruleId: string;
  /** Where a rule of a session is to be found; its open sessions are looked through without it. */
  sessionId?: string;
}

/** The answer to `run` with `wait: "accepted"`: the run is stored and will end in exactly one way. */
export interface RunAccepted {
  runId: string;
  status: "running" | "queued";
  /** 1 for the run that is next. */
  queuePosition?: number;
  lastSeq: number;
}

/** The end of a run: exactly one, always its last event. */
export interface RunCompleted {
  status: "completed" | "failed" | "cancelled" | "interrupted";
  stopReason: string;
  usage: Usage;
  error?: WireError;
  durationMs: number;
}

/** The envelope of every event. */
export interface RunEvent {
  sessionId: string;
  runId?: string;
  parentRunId?: string;
  parentCallId?: string;
  /** Of a durable event: its own, 1, 2, 3 … in the session. Of an ephemeral one: that of the last durable event. */
  seq: number;
  /** Counts ephemeral events after `seq`. */
  sub?: number;
  /** The seq of the durable event that this client was sent before. */
  prevSeq?: number;
  epoch: string;
  time: string;
  ephemeral?: true;
  source?: Source;
  type: string;
  /** Shaped by `type`: see `EVENTS`. */
  data: { [key: string]: Json };
}

/** Why a run failed. */
export interface RunFailure {
  kind: string;
  message: string;
}

/** How a model call is made. A field that is absent is not sent. */
export interface RunOptions {
  /** How freely tokens are chosen; 0: the likeliest each time. */
  temperature?: number;
  /** Choose among the likeliest tokens that together have this probability. */
  topP?: number;
  /** Longest answer of one model call. */
  maxOutputTokens?: number;
  /** Whether the model may call tools, must, must not, or must call this one. */
  toolChoice?: "auto" | "none" | "required" | NamedToolChoice;
  /** Model calls in one run. */
  maxTurns?: number;
  /** How much a model reasons; the values are the endpoint's own. */
  reasoningEffort?: string;
  /** Asks the endpoint for the same choices again; few promise it. */
  seed?: number;
  /** Texts at which the answer ends. */
  stop?: string[];
  /** True leaves the conversation with the model service; false keeps it here. */
  store?: boolean;
  /** Whether one answer may hold several tool calls. */
  parallelToolCalls?: boolean;
  /** Added after the agent's and the providers'. */
  instructions?: string;
  /** Instead of the agent's. */
  model?: string;
}

/** Run an agent on some input. Without `sessionId` the run has a session of its own that ends with it. */
export interface RunParams {
  sessionId?: string;
  /** Only without `sessionId`. */
  agent?: string | AgentSpec;
  /** A string, content blocks, or messages. Blank input is legal. */
  input: string | Message[] | (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  /** Minted by the client, so that the request can be sent again. */
  runId?: string;
  middleware?: MiddlewareEntry[];
  wait?: "completed" | "accepted";
  /** `steer`: join the run under way; with `context`, `options` or `responseFormat` of its own, queue. */
  whenBusy?: "reject" | "queue" | "steer";
  /** False: no ephemeral events. */
  stream?: boolean;
  context?: ContextItem[];
  options?: RunOptions;
  /** A JSON Schema, or OpenAI's `{type:"json_schema", json_schema:{…}}` around one. */
  responseFormat?: Json;
  properties?: { [key: string]: Json };
  functionInvocationKwargs?: { [key: string]: Json };
  clientKwargs?: { [key: string]: Json };
  timeoutMs?: number;
  workDoneToken?: string | number;
  partialResultToken?: string | number;
}

/** The run waits for its turn. */
export interface RunQueued {
  position: number;
}

/** What a run answered. */
export interface RunResponse {
  messages: Message[];
  text: string;
  usage: Usage;
}

/** How a run ended, if it did not fail. A failed run is answered by an error. */
export interface RunResult {
  runId: string;
  sessionId: string;
  status: "completed" | "cancelled" | "interrupted";
  stopReason: string;
  /** The run's output. Of a run that was cut it may end in a message marked `partial`. */
  messages: Message[];
  text: string;
  /** The answer as JSON, where a `responseFormat` was given and it parsed. */
  value?: Json;
  /** Why there is no `value`. */
  valueError?: string;
  usage: Usage;
  lastSeq: number;
  durationMs: number;
  warnings: WireWarning[];
  pendingRequests?: PendingRequest[];
}

/** The run has the session; its input follows as `message.completed`. */
export interface RunStarted {
  agent: string;
  model?: string;
}

/** One run, as far as it has come. */
export interface RunState {
  runId: string;
  status: "queued" | "running" | "completed" | "failed" | "cancelled" | "interrupted";
  stopReason?: string;
  startedAt?: string;
  endedAt?: string;
  error?: WireError;
}

/** What is remembered in a scope and fits a question, best first. */
export interface SearchMemoriesParams {
  /** The provider type whose memory is meant. */
  type?: "chat_history_memory" | "file_memory";
  /** `file_memory` has one folder a scope: it takes the very keys that its entry names. */
  scope: MemoryScope;
  /** Of `chat_history_memory`; default: the one that its entries have by default. */
  collection?: string;
  /** Blank finds nothing. */
  query: string;
  limit?: number;
}

/** What fits. */
export interface SearchMemoriesResult {
  items: FoundMemory[];
}

/** A piece of the system instructions, and who said it. */
export interface SeenInstruction {
  text: string;
  source: Source;
  /** Estimated, as everywhere here but in `usage`. */
  tokens: number;
}

/** A message that the model saw. */
export interface SeenMessage {
  /** Of a message that has none: its source, and a number within the run. */
  messageId: string;
  role: "system" | "user" | "assistant" | "tool";
  /** `history` for what a history has loaded, whoever said it once. */
  source: Source;
  tokens: number;
  /** Only of what was put before the model for this run: by a provider, by middleware, or with the run. Memories stand in it as they are kept now; one that was erased is gone. */
  text?: string;
  /** The memories that it is made from, where its provider says so. */
  memoryIds?: string[];
}

/** A tool that the model was offered. */
export interface SeenTool {
  name: string;
  source: Source;
  tokens: number;
}

/** The process. */
export interface ServerState {
  instanceId: string;
  version: string;
  protocolVersion: number;
  uptimeMs: number;
  openSessions: number;
  activeRuns: number;
  rssBytes?: number;
}

/** `session/closed`: a session is no longer open here, or no longer there at all. */
export interface SessionClosed {
  sessionId: string;
  reason: "closed" | "deleted";
}

/** A session in a few lines. */
export interface SessionInfo {
  sessionId: string;
  agent: string;
  model?: string;
  title?: string;
  cwd?: string;
  createdAt: string;
  updatedAt: string;
  /** Rises with each change of state, config options, title, metadata or archived; not with messages or events. */
  revision: number;
  lastSeq: number;
  epoch: string;
  status: "idle" | "running" | "inputRequired";
  archived?: boolean;
  /** In this process. */
  open: boolean;
  parentSessionId?: string;
  serviceSessionId?: string;
  usage?: Usage;
  metadata?: { [key: string]: Json };
}

/** Of one session, or of none. */
export interface SessionOrNone {
  sessionId?: string;
}

/** A request about one session. */
export interface SessionParams {
  sessionId: string;
}

/** A session in a few lines. */
export interface SessionResult {
  session: SessionInfo;
}

/** `session/updated`: a session's labels or settings have changed. */
export interface SessionUpdated {
  session: SessionInfo;
}

/** `initializationOptions.sidecar`: what the host says of itself. */
export interface SidecarOptions {
  protocolVersions?: number[];
  clientId?: string;
  /** The same keys as `sidecar.toml`, limited as for an untrusted project. */
  config?: { [key: string]: Json };
  /** Named secrets for `api_key_secret`. Kept in memory only. */
  secrets?: { [key: string]: string };
  features?: { [key: string]: Json };
  optOutEvents?: string[];
  maxMessageBytes?: number;
}

/** Where a message, an instruction or an event comes from. */
export interface Source {
  /** `external`, `history`, `provider`, `agent`, `run` or `middleware`; later versions may add others. */
  type: string;
  sourceId?: string;
  sourceType?: string;
  /** Sessions that the text was first said in, for text out of a shared memory. */
  originSessionIds?: string[];
}

/** The session's state has a new revision. */
export interface StateChanged {
  revision: number;
  keys: string[];
}

/** Add input to a run under way; it joins the run's next model call. */
export interface SteerRunParams {
  sessionId: string;
  /** The run that is meant; another one, or none, is `runNotFound`. */
  expectedRunId: string;
  input: string | Message[] | (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
}

/** `accepted` false: the run had its answer already; send a new run. */
export interface SteerRunResult {
  runId: string;
  accepted: boolean;
}

/** Plain text. */
export interface TextBlock {
  type?: "text";
  text: string;
}

/** The call that consent is asked for. */
export interface ToolCallShown {
  callId: string;
  name: string;
  kind?: string;
  arguments: { [key: string]: Json };
}

/** A call has its one result. */
export interface ToolCompleted {
  callId: string;
  name: string;
  status: "completed" | "failed" | "denied" | "cancelled" | "unknown" | "notRun";
  content: (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  structuredContent?: Json;
  durationMs: number;
}

/** Ephemeral. What a tool tells while it works. */
export interface ToolDelta {
  callId: string;
  text: string;
}

/** A row of `listTools`. */
export interface ToolInfo {
  name: string;
  description: string;
  inputSchema: { [key: string]: Json };
  /** Who offers it: an agent, a provider, the host. */
  source: string;
  approvalMode: "never_require" | "always_require";
}

/** A call begins to run, or waits for its approval (`pending`; sent again when it runs). */
export interface ToolStarted {
  callId: string;
  name: string;
  title?: string;
  kind?: string;
  arguments: { [key: string]: Json };
  status: "pending" | "running";
}

/** A tool of the session's agent. */
export interface ToolState {
  name: string;
  source: string;
}

/** The user's word on a workspace, passed on by the host. */
export interface TrustFolderParams {
  path: string;
  trusted: boolean;
}

/** A block of a type that this version does not know: kept and passed on, never sent to a model. */
export interface UnknownBlock {
  type: string;
}

/** Change a session's settings, labels or state. Fields that are absent stay as they are. */
export interface UpdateSessionParams {
  sessionId: string;
  title?: string;
  metadata?: { [key: string]: Json };
  archived?: boolean;
  /** Option id → its new value. */
  configOptions?: { [key: string]: Json };
  /** RFC 7386 merge patch of the state bag. */
  statePatch?: { [key: string]: Json };
  /** Refuse with `revisionConflict` if the session has another revision. */
  ifRevision?: number;
}

/** The session as it is now. */
export interface UpdateSessionResult {
  session: SessionInfo;
  configOptions: ConfigOption[];
}

/** Tokens of one or more model calls. */
export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cachedInputTokens?: number;
  reasoningTokens?: number;
  /** True where the endpoint gave no numbers and they were counted from the text. */
  estimated?: boolean;
}

/** Tokens of the model call that made the message. */
export interface UsageBlock {
  type?: "usage";
  usage: Usage;
}

/** Tokens so far. */
export interface UsageUpdated {
  run: Usage;
  session: Usage;
  /** Tokens of the agent's last model call, what it was given and what it answered. */
  contextUsed?: number;
  /** Tokens that its model takes, where that is known. */
  contextSize?: number;
}

/** Something went wrong that did not end the run. */
export interface WarningEvent {
  kind: string;
  message: string;
  willRetry?: boolean;
  attempt?: number;
}

/** A JSON-RPC error object, with our `data`. */
export interface WireError {
  code: number;
  message: string;
  data: ErrorData;
}

/** Something the host should know that is no error. */
export interface WireWarning {
  kind: string;
  message: string;
  sourceId?: string;
  data?: Json;
}

/** Requests from client to server. */
export interface Methods {
  "initialize": { params: InitializeParams; result: InitializeResult };
  "createSession": { params: CreateSessionParams; result: CreateSessionResult };
  "resumeSession": { params: ResumeSessionParams; result: ResumeSessionResult };
  "listSessions": { params: ListSessionsParams; result: ListSessionsResult };
  "forkSession": { params: ForkSessionParams; result: SessionResult };
  "updateSession": { params: UpdateSessionParams; result: UpdateSessionResult };
  "closeSession": { params: SessionParams; result: Empty };
  "deleteSession": { params: SessionParams; result: Empty };
  "exportSession": { params: SessionParams; result: ExportSessionResult };
  "importSession": { params: ImportSessionParams; result: SessionResult };
  "run": { params: RunParams; result: RunResult | RunAccepted };
  "cancelRun": { params: CancelRunParams; result: CancelRunResult };
  "steerRun": { params: SteerRunParams; result: SteerRunResult };
  "getState": { params: GetStateParams; result: GetStateResult };
  "getHistory": { params: GetHistoryParams; result: GetHistoryResult };
  "getEvents": { params: GetEventsParams; result: GetEventsResult };
  "explainRun": { params: ExplainRunParams; result: ExplainRunResult };
  "resolveRequest": { params: ResolveRequestParams; result: ResolveRequestResult };
  "listAgents": { params: Empty; result: ListAgentsResult };
  "listModels": { params: Empty; result: ListModelsResult };
  "listProviders": { params: Empty; result: ListProvidersResult };
  "listTools": { params: SessionOrNone; result: ListToolsResult };
  "listApprovalRules": { params: SessionOrNone; result: ListApprovalRulesResult };
  "revokeApprovalRule": { params: RevokeApprovalRuleParams; result: Empty };
  "listMemories": { params: ListMemoriesParams; result: ListMemoriesResult };
  "searchMemories": { params: SearchMemoriesParams; result: SearchMemoriesResult };
  "deleteMemories": { params: DeleteMemoriesParams; result: DeleteMemoriesResult };
  "reloadConfig": { params: Empty; result: ReloadConfigResult };
  "trustFolder": { params: TrustFolderParams; result: Empty };
  "getSchema": { params: GetSchemaParams; result: GetSchemaResult };
  "shutdown": { params: Empty; result: null };
}

/** Requests from server to client. */
export interface HostMethods {
  "host/callTool": { params: CallToolParams; result: CallToolResult };
  "host/beforeRun": { params: BeforeRunParams; result: BeforeRunResult };
  "host/afterRun": { params: AfterRunParams; result: AfterRunResult };
  "host/requestApproval": { params: RequestApprovalParams; result: ApprovalOutcome };
  "host/elicit": { params: ElicitParams; result: ElicitResult };
  "host/getEditorContext": { params: EditorContextParams; result: EditorContextResult };
}

/** From client to server. */
export interface ClientNotifications {
  "initialized": Empty;
  "exit": Empty;
  "$/cancelRequest": CancelParams;
}

/** From server to client. */
export interface ServerNotifications {
  "run/event": RunEvent;
  "session/updated": SessionUpdated;
  "session/closed": SessionClosed;
  "config/updated": ConfigUpdated;
}

/** Event type → the shape of its `data`. */
export interface Events {
  "run.queued": RunQueued;
  "run.started": RunStarted;
  "provider.started": ProviderStarted;
  "provider.progress": ProviderProgress;
  "provider.completed": ProviderCompleted;
  "provider.failed": ProviderFailed;
  "message.started": MessageStarted;
  "message.delta": MessageDelta;
  "message.completed": MessageCompleted;
  "reasoning.delta": ReasoningDelta;
  "reasoning.completed": ReasoningCompleted;
  "tool.started": ToolStarted;
  "tool.delta": ToolDelta;
  "tool.completed": ToolCompleted;
  "request.opened": RequestOpened;
  "request.resolved": RequestResolved;
  "plan.updated": PlanUpdated;
  "mode.changed": ModeChanged;
  "state.changed": StateChanged;
  "usage.updated": UsageUpdated;
  "warning": WarningEvent;
  "run.completed": RunCompleted;
}
