// The wire contract of agent-sidecar, protocol version 1. Made by `agent-sidecar schema --format typescript`.
// An absent field may also be sent as null. Survive a `type`, `kind` or enum value that is not listed here.

export type Json = any;

/** A run in progress. */
export interface ActiveRun {
  runId: string;
  startedAt: string;
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
  requestId: string;
  agent: string;
  sourceId: string;
  inputMessages: Message[];
  contextMessages: Message[];
  instructions: string[];
  tools: string[];
  state: Json;
  kwargs?: { [key: string]: Json };
  response?: RunResponse;
  error?: RunFailure;
  partialText?: string;
}

/** What a host's provider remembers. */
export interface AfterRunResult {
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
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  toolChoice?: "auto" | "none" | "required" | NamedToolChoice;
  maxTurns?: number;
  reasoningEffort?: string;
  seed?: number;
  stop?: string[];
  store?: boolean;
  parallelToolCalls?: boolean;
  instructions?: string;
  model?: string;
}

/** An agent. Everything is optional: the empty spec is the default model with no instructions. */
export interface AgentSpec {
  name?: string;
  description?: string;
  instructions?: string;
  model?: string;
  tools?: (HostTool | RegisteredTool | AgentTool | PythonTool)[];
  contextProviders?: ProviderEntry[];
  middleware?: MiddlewareEntry[];
  options?: AgentOptions;
  maxTurns?: number;
  afterRunOrder?: "reverse" | "forward";
  perServiceCallHistory?: boolean;
  approvals?: ApprovalConfig;
  compaction?: CompactionConfig;
  implementation?: string;
  implementationConfig?: { [key: string]: Json };
  harness?: boolean | { [key: string]: Json };
}

/** Another agent, offered as a tool. */
export interface AgentTool {
  type: "agent";
  agent: string;
  name?: string;
  description?: string;
  argName?: string;
  argDescription?: string;
  propagateSession?: boolean;
  approvalMode?: "never_require" | "always_require";
}

/** How approvals are asked for. */
export interface ApprovalConfig {
  mode?: "live" | "inputRequired";
  timeoutMs?: number;
  rules?: ApprovalRule[];
}

/** One answer that can be given. */
export interface ApprovalOption {
  optionId: string;
  name: string;
  kind: "allowOnce" | "allowSession" | "allowAlways" | "rejectOnce" | "rejectAlways";
}

/** A person's answer. Anything but a known option denies the call. */
export interface ApprovalOutcome {
  outcome: string;
  optionId?: string;
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
  decision: "allow" | "deny" | "ask";
  tool: string;
  arguments?: { [key: string]: Json };
}

/** A row of `listApprovalRules`. */
export interface ApprovalRuleInfo {
  ruleId: string;
  decision: "allow" | "deny";
  tool: string;
  arguments?: { [key: string]: Json };
  scope: "session" | "always";
  createdAt: string;
}

/** Add context before the model is called. */
export interface BeforeRunParams {
  sessionId: string;
  runId: string;
  requestId: string;
  agent: string;
  sourceId: string;
  inputMessages: Message[];
  contextMessages: Message[];
  instructions: string[];
  tools: string[];
  state: Json;
  kwargs?: { [key: string]: Json };
}

/** What a host's provider adds. */
export interface BeforeRunResult {
  instructions?: string | string[];
  messages?: Message[];
  tools?: HostTool[];
  state?: { [key: string]: Json };
  replace?: Replacement;
}

/** Carry out a tool of the host's. `$/progress` with the `requestId` as its token tells how it gets on. */
export interface CallToolParams {
  sessionId: string;
  runId: string;
  requestId: string;
  callId: string;
  name: string;
  arguments: { [key: string]: Json };
  kwargs?: { [key: string]: Json };
  deadlineMs?: number;
}

/** What a host's tool gave. */
export interface CallToolResult {
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
  runId?: string;
  reason?: string;
}

/** `alreadyFinished`: a known run that has ended. `notRunning`: there is none. */
export interface CancelRunResult {
  status: "cancelling" | "alreadyFinished" | "notRunning";
}

/** How a history that grows too long is shortened. */
export interface CompactionConfig {
  strategy: string;
  contextWindowTokens?: number;
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
  sessionId?: string;
  agent?: string | AgentSpec;
  model?: string;
  mode?: string;
  instructions?: string;
  cwd?: string;
  additionalDirectories?: string[];
  tools?: HostTool[];
  contextProviders?: ProviderEntry[];
  mcpServers?: { [key: string]: Json }[];
  state?: { [key: string]: Json };
  serviceSessionId?: string;
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
  type?: "chat_history_memory" | "file_memory";
  scope: MemoryScope;
  collection?: string;
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
  kind: string;
  retryable: boolean;
  retryAfterMs?: number;
  sessionId?: string;
  runId?: string;
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
  sessionId?: string;
  runId: string;
  call?: number;
}

/** Every model call of the run, and how long its providers took. */
export interface ExplainRunResult {
  runId: string;
  agent: string;
  calls: ExplainedCall[];
  providers: ProviderPhase[];
}

/** One model call. */
export interface ExplainedCall {
  index: number;
  model: string;
  by?: string;
  instructions: SeenInstruction[];
  messages: SeenMessage[];
  tools: SeenTool[];
  removed?: Removed[];
  usage?: Usage;
  startedAt: string;
  firstTokenMs?: number;
  durationMs: number;
}

/** The whole session as one JSON document: `{format: "agent-sidecar/session", version: 1, …}`. */
export interface ExportSessionResult {
  document: { [key: string]: Json };
}

/** Make a new session out of a stored one: messages and state are copied, events are not. */
export interface ForkSessionParams {
  sessionId: string;
  throughRunId?: string;
  beforeRunId?: string;
  newSessionId?: string;
  ephemeral?: boolean;
}

/** A memory that fits. */
export interface FoundMemory {
  memoryId: string;
  text: string;
  role?: string;
  createdAt?: string;
  scope: MemoryScope;
  sessionId?: string;
  score: number;
  count?: number;
}

/** A model's wish to call a tool. */
export interface FunctionCallBlock {
  type?: "functionCall";
  callId: string;
  name: string;
  arguments: { [key: string]: Json };
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
  epoch?: string;
  limit?: number;
  types?: string[];
  waitMs?: number;
}

/** Events as they were sent, without `prevSeq`. */
export interface GetEventsResult {
  events: { [key: string]: Json }[];
  lastSeq: number;
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
  include?: ("session" | "run" | "queue" | "providers" | "state" | "usage" | "pending" | "documents" | "tools")[];
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
  name: string;
  title?: string;
  description: string;
  inputSchema: { [key: string]: Json };
  kind?: string;
  approvalMode?: "never_require" | "always_require";
  timeoutMs?: number;
}

/** Make a session from an exported document. */
export interface ImportSessionParams {
  document: { [key: string]: Json };
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
  type?: "chat_history_memory" | "file_memory";
  scope: MemoryScope;
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
  data: string;
  mimeType: string;
}

/** One memory. */
export interface MemoryItem {
  memoryId: string;
  text: string;
  role?: string;
  createdAt?: string;
  scope: MemoryScope;
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
  messageId?: string;
  role: "system" | "user" | "assistant" | "tool";
  content: (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  authorName?: string;
  source?: Source;
  runId?: string;
  createdAt?: string;
  metadata?: { [key: string]: Json };
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
  name?: string;
  import?: string;
  config?: Json;
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
  type: string;
  sourceId?: string;
  stateKey?: string;
  config?: { [key: string]: Json };
  onError?: "fail" | "warn";
  timeoutMs?: number;
  independent?: boolean;
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
  import: string;
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
  name: string;
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
  ref: string;
  by: Source;
}

/** What is to stand in place of what others have added; absent parts stay. */
export interface Replacement {
  messages?: Message[];
  instructions?: string[];
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
  payload: Json;
  deadline?: string;
}

/** A request to the host is open no longer. */
export interface RequestResolved {
  requestId: string;
  outcome: string;
  by: "client" | "timeout" | "cancel" | "disconnect" | "rule";
}

/** Answer a request to the host in another way than by its JSON-RPC answer, also after a reconnect or restart. */
export interface ResolveRequestParams {
  sessionId?: string;
  requestId: string;
  result?: Json;
  error?: { [key: string]: Json };
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
  truncated: boolean;
  recovered?: Recovered;
  warnings?: WireWarning[];
}

/** Forget a standing rule. One that is not there is forgotten already. */
export interface RevokeApprovalRuleParams {
  ruleId: string;
  sessionId?: string;
}

/** The answer to `run` with `wait: "accepted"`: the run is stored and will end in exactly one way. */
export interface RunAccepted {
  runId: string;
  status: "running" | "queued";
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
  seq: number;
  sub?: number;
  prevSeq?: number;
  epoch: string;
  time: string;
  ephemeral?: true;
  source?: Source;
  type: string;
  data: { [key: string]: Json };
}

/** Why a run failed. */
export interface RunFailure {
  kind: string;
  message: string;
}

/** How a model call is made. A field that is absent is not sent. */
export interface RunOptions {
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  toolChoice?: "auto" | "none" | "required" | NamedToolChoice;
  maxTurns?: number;
  reasoningEffort?: string;
  seed?: number;
  stop?: string[];
  store?: boolean;
  parallelToolCalls?: boolean;
  instructions?: string;
  model?: string;
}

/** Run an agent on some input. Without `sessionId` the run has a session of its own that ends with it. */
export interface RunParams {
  sessionId?: string;
  agent?: string | AgentSpec;
  input: string | Message[] | (TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock | ReasoningBlock | FunctionCallBlock | FunctionResultBlock | ApprovalRequestBlock | ApprovalResponseBlock | UsageBlock | ErrorBlock | UnknownBlock)[];
  runId?: string;
  middleware?: MiddlewareEntry[];
  wait?: "completed" | "accepted";
  whenBusy?: "reject" | "queue" | "steer";
  stream?: boolean;
  context?: ContextItem[];
  options?: RunOptions;
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
  messages: Message[];
  text: string;
  value?: Json;
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
  type?: "chat_history_memory" | "file_memory";
  scope: MemoryScope;
  collection?: string;
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
  tokens: number;
}

/** A message that the model saw. */
export interface SeenMessage {
  messageId: string;
  role: "system" | "user" | "assistant" | "tool";
  source: Source;
  tokens: number;
  text?: string;
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
  revision: number;
  lastSeq: number;
  epoch: string;
  status: "idle" | "running" | "inputRequired";
  archived?: boolean;
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
  config?: { [key: string]: Json };
  secrets?: { [key: string]: string };
  features?: { [key: string]: Json };
  optOutEvents?: string[];
  maxMessageBytes?: number;
}

/** Where a message, an instruction or an event comes from. */
export interface Source {
  type: string;
  sourceId?: string;
  sourceType?: string;
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
  configOptions?: { [key: string]: Json };
  statePatch?: { [key: string]: Json };
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
  contextUsed?: number;
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
  "state.changed": StateChanged;
  "usage.updated": UsageUpdated;
  "warning": WarningEvent;
  "run.completed": RunCompleted;
}
