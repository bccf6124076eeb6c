"""The wire contract of agent-sidecar, protocol version 1, as `TypedDict`s. Nothing here runs.

Made by `generate_types.py` from the contract's `schema.json`; do not edit. An object may hold more keys than are named
here, and a `type`, `kind` or enum value may be one that is not listed: a newer sidecar adds some.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, as it came or as it will be sent."""


class TextBlock(TypedDict):
    """Plain text."""

    type: NotRequired[Literal["text"]]
    text: str


class MediaBlock(TypedDict):
    """An image or a sound, inline."""

    type: Literal["image", "audio"]
    data: str
    mimeType: str


class ResourceLinkBlock(TypedDict):
    """A pointer to something; never opened or fetched by the sidecar."""

    type: NotRequired[Literal["resource_link"]]
    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]


class EmbeddedResource(TypedDict):
    """A resource's contents: exactly one of `text` and `blob` (base64)."""

    uri: str
    mimeType: NotRequired[str]
    text: NotRequired[str]
    blob: NotRequired[str]


class ResourceBlock(TypedDict):
    """A resource with its contents."""

    type: NotRequired[Literal["resource"]]
    resource: EmbeddedResource


class ReasoningBlock(TypedDict):
    """What a model said to itself."""

    type: NotRequired[Literal["reasoning"]]
    text: str


class FunctionCallBlock(TypedDict):
    """A model's wish to call a tool."""

    type: NotRequired[Literal["functionCall"]]
    callId: str
    name: str
    arguments: JsonObject
    rawArguments: NotRequired[str]


class FunctionResultBlock(TypedDict):
    """The one result of a call."""

    type: NotRequired[Literal["functionResult"]]
    callId: str
    content: "list[Block]"
    structuredContent: NotRequired[Json]
    isError: NotRequired[bool]


class ApprovalRequestBlock(TypedDict):
    """A call that waits for a person's decision."""

    type: NotRequired[Literal["approvalRequest"]]
    requestId: str
    callId: str
    name: str
    arguments: JsonObject


class ApprovalResponseBlock(TypedDict):
    """A person's decision on a recorded request."""

    type: NotRequired[Literal["approvalResponse"]]
    requestId: str
    approved: bool
    message: NotRequired[str]


class Usage(TypedDict):
    """Tokens of one or more model calls."""

    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    cachedInputTokens: NotRequired[int]
    reasoningTokens: NotRequired[int]
    estimated: NotRequired[bool]


class UsageBlock(TypedDict):
    """Tokens of the model call that made the message."""

    type: NotRequired[Literal["usage"]]
    usage: Usage


class ErrorBlock(TypedDict):
    """An error that is part of the conversation."""

    type: NotRequired[Literal["error"]]
    kind: str
    message: str


class UnknownBlock(TypedDict):
    """A block of a type that this version does not know: kept and passed on, never sent to a model."""

    type: str


Block: TypeAlias = (
    TextBlock
    | MediaBlock
    | ResourceLinkBlock
    | ResourceBlock
    | ReasoningBlock
    | FunctionCallBlock
    | FunctionResultBlock
    | ApprovalRequestBlock
    | ApprovalResponseBlock
    | UsageBlock
    | ErrorBlock
    | UnknownBlock
)


class ReplayNone(TypedDict):
    """No replay."""

    type: NotRequired[Literal["none"]]


class ReplayStart(TypedDict):
    """Replay every event that is kept."""

    type: Literal["start"]


class ReplaySeq(TypedDict):
    """Replay what came after a cursor."""

    type: Literal["seq"]
    seq: int
    epoch: str


ReplayFrom: TypeAlias = ReplayNone | ReplayStart | ReplaySeq


class ActiveRun(TypedDict):
    """A run in progress."""

    runId: str
    startedAt: str
    stage: NotRequired[str]


class Added(TypedDict):
    """What a provider put before the model. Tokens are estimated."""

    instructions: NotRequired[int]
    messages: NotRequired[int]
    tools: NotRequired[int]
    middleware: NotRequired[int]
    tokens: NotRequired[int]


class Source(TypedDict):
    """Where a message, an instruction or an event comes from."""

    type: str
    sourceId: NotRequired[str]
    sourceType: NotRequired[str]
    originSessionIds: NotRequired[list[str]]


class Message(TypedDict):
    """One message of a conversation. Frozen, so that one object can serve the store, the model and the wire."""

    messageId: NotRequired[str]
    role: Literal["system", "user", "assistant", "tool"]
    content: list[Block]
    authorName: NotRequired[str]
    source: NotRequired[Source]
    runId: NotRequired[str]
    createdAt: NotRequired[str]
    metadata: NotRequired[JsonObject]
    partial: NotRequired[Literal[True]]


class RunResponse(TypedDict):
    """What a run answered."""

    messages: list[Message]
    text: str
    usage: Usage


class RunFailure(TypedDict):
    """Why a run failed."""

    kind: str
    message: str


class AfterRunParams(TypedDict):
    """Learn from a run: from its response, or from its failure."""

    sessionId: str
    runId: str
    requestId: str
    agent: str
    sourceId: str
    inputMessages: list[Message]
    contextMessages: list[Message]
    instructions: list[str]
    tools: list[str]
    state: Json
    kwargs: NotRequired[JsonObject]
    response: NotRequired[RunResponse]
    error: NotRequired[RunFailure]
    partialText: NotRequired[str]


class AfterRunResult(TypedDict):
    """What a host's provider remembers."""

    state: NotRequired[JsonObject]


class AgentInfo(TypedDict):
    """A row of `listAgents`."""

    name: str
    description: NotRequired[str]
    model: NotRequired[str]


class NamedToolChoice(TypedDict):
    """Make the model call this tool."""

    name: str


class AgentOptions(TypedDict):
    """The same in an agent, where an unknown key is refused."""

    temperature: NotRequired[float]
    topP: NotRequired[float]
    maxOutputTokens: NotRequired[int]
    toolChoice: NotRequired[Literal["auto", "none", "required"] | NamedToolChoice]
    maxTurns: NotRequired[int]
    reasoningEffort: NotRequired[str]
    seed: NotRequired[int]
    stop: NotRequired[list[str]]
    store: NotRequired[bool]
    parallelToolCalls: NotRequired[bool]
    instructions: NotRequired[str]
    model: NotRequired[str]


class HostTool(TypedDict):
    """A tool that the host carries out."""

    type: NotRequired[Literal["host"]]
    name: str
    title: NotRequired[str]
    description: str
    inputSchema: JsonObject
    kind: NotRequired[str]
    approvalMode: NotRequired[Literal["never_require", "always_require"]]
    timeoutMs: NotRequired[int]


class RegisteredTool(TypedDict):
    """A tool of the sidecar's own, by its registered name."""

    type: Literal["registered"]
    name: str
    approvalMode: NotRequired[Literal["never_require", "always_require"]]


class AgentTool(TypedDict):
    """Another agent, offered as a tool."""

    type: Literal["agent"]
    agent: str
    name: NotRequired[str]
    description: NotRequired[str]
    argName: NotRequired[str]
    argDescription: NotRequired[str]
    propagateSession: NotRequired[bool]
    approvalMode: NotRequired[Literal["never_require", "always_require"]]


PythonTool = TypedDict(
    "PythonTool",
    {
        "type": Literal["python"],
        "import": str,
        "approvalMode": NotRequired[Literal["never_require", "always_require"]],
    },
)
"""A Python function by import path; configuration files only."""


class ProviderEntry(TypedDict):
    """One context provider of an agent or a session."""

    type: str
    sourceId: NotRequired[str]
    stateKey: NotRequired[str]
    config: NotRequired[JsonObject]
    onError: NotRequired[Literal["fail", "warn"]]
    timeoutMs: NotRequired[int]
    independent: NotRequired[bool]
    position: NotRequired[Literal["before_input", "after_input"]]


MiddlewareEntry = TypedDict(
    "MiddlewareEntry",
    {
        "name": NotRequired[str],
        "import": NotRequired[str],
        "config": NotRequired[Json],
    },
)
"""A middleware: a registered one by its name; in configuration files also one by its import path."""


class ApprovalRule(TypedDict):
    """What to do with calls that match."""

    decision: Literal["allow", "deny", "ask"]
    tool: str
    arguments: NotRequired[JsonObject]


class ApprovalConfig(TypedDict):
    """How approvals are asked for."""

    mode: NotRequired[Literal["live", "inputRequired"]]
    timeoutMs: NotRequired[int]
    rules: NotRequired[list[ApprovalRule]]


class CompactionConfig(TypedDict):
    """How a history that grows too long is shortened."""

    strategy: str
    contextWindowTokens: NotRequired[int]
    maxOutputTokens: NotRequired[int]


class AgentSpec(TypedDict):
    """An agent. Everything is optional: the empty spec is the default model with no instructions."""

    name: NotRequired[str]
    description: NotRequired[str]
    instructions: NotRequired[str]
    model: NotRequired[str]
    tools: NotRequired[list[HostTool | RegisteredTool | AgentTool | PythonTool]]
    contextProviders: NotRequired[list[ProviderEntry]]
    middleware: NotRequired[list[MiddlewareEntry]]
    options: NotRequired[AgentOptions]
    maxTurns: NotRequired[int]
    afterRunOrder: NotRequired[Literal["reverse", "forward"]]
    perServiceCallHistory: NotRequired[bool]
    approvals: NotRequired[ApprovalConfig]
    compaction: NotRequired[CompactionConfig]
    implementation: NotRequired[str]
    implementationConfig: NotRequired[JsonObject]
    harness: NotRequired[bool | JsonObject]


class ApprovalOption(TypedDict):
    """One answer that can be given."""

    optionId: str
    name: str
    kind: Literal["allowOnce", "allowSession", "allowAlways", "rejectOnce", "rejectAlways"]


class ApprovalOutcome(TypedDict):
    """A person's answer. Anything but a known option denies the call."""

    outcome: str
    optionId: NotRequired[str]
    message: NotRequired[str]


class ApprovalRuleInfo(TypedDict):
    """A row of `listApprovalRules`."""

    ruleId: str
    decision: Literal["allow", "deny"]
    tool: str
    arguments: NotRequired[JsonObject]
    scope: Literal["session", "always"]
    createdAt: str


class BeforeRunParams(TypedDict):
    """Add context before the model is called."""

    sessionId: str
    runId: str
    requestId: str
    agent: str
    sourceId: str
    inputMessages: list[Message]
    contextMessages: list[Message]
    instructions: list[str]
    tools: list[str]
    state: Json
    kwargs: NotRequired[JsonObject]


class Replacement(TypedDict):
    """What is to stand in place of what others have added; absent parts stay."""

    messages: NotRequired[list[Message]]
    instructions: NotRequired[list[str]]
    tools: NotRequired[list[str]]


class BeforeRunResult(TypedDict):
    """What a host's provider adds."""

    instructions: NotRequired[str | list[str]]
    messages: NotRequired[list[Message]]
    tools: NotRequired[list[HostTool]]
    state: NotRequired[JsonObject]
    replace: NotRequired[Replacement]


class CallToolParams(TypedDict):
    """Carry out a tool of the host's. `$/progress` with the `requestId` as its token tells how it gets on."""

    sessionId: str
    runId: str
    requestId: str
    callId: str
    name: str
    arguments: JsonObject
    kwargs: NotRequired[JsonObject]
    deadlineMs: NotRequired[int]


class CallToolResult(TypedDict):
    """What a host's tool gave."""

    content: str | list[Block]
    structuredContent: NotRequired[Json]
    isError: NotRequired[bool]


class CancelParams(TypedDict):
    """`$/cancelRequest`: string and number ids differ."""

    id: str | int


class CancelRunParams(TypedDict):
    """Ask a run to stop. Answered at once, whatever the run is doing."""

    sessionId: NotRequired[str]
    runId: NotRequired[str]
    reason: NotRequired[str]


class CancelRunResult(TypedDict):
    """`alreadyFinished`: a known run that has ended. `notRunning`: there is none."""

    status: Literal["cancelling", "alreadyFinished", "notRunning"]


class ConfigChoice(TypedDict):
    """One value that a config option can take."""

    value: Json
    name: str
    description: NotRequired[str]


class ConfigOption(TypedDict):
    """A setting of a session that the host may show and change."""

    id: str
    name: str
    value: Json
    choices: NotRequired[list[ConfigChoice]]


class ConfigUpdated(TypedDict):
    """`config/updated`: what can be named in a request has changed."""

    agents: list[str]
    models: list[str]


class ContextItem(TypedDict):
    """A document that the run is about."""

    uri: str
    range: NotRequired[JsonObject]
    version: NotRequired[int]
    text: NotRequired[str]


class CreateSessionParams(TypedDict):
    """Make a session. The same id with the same payload gives the same session."""

    sessionId: NotRequired[str]
    agent: NotRequired[str | AgentSpec]
    model: NotRequired[str]
    mode: NotRequired[str]
    instructions: NotRequired[str]
    cwd: NotRequired[str]
    additionalDirectories: NotRequired[list[str]]
    tools: NotRequired[list[HostTool]]
    contextProviders: NotRequired[list[ProviderEntry]]
    mcpServers: NotRequired[list[JsonObject]]
    state: NotRequired[JsonObject]
    serviceSessionId: NotRequired[str]
    ephemeral: NotRequired[bool]
    title: NotRequired[str]
    metadata: NotRequired[JsonObject]


class SessionInfo(TypedDict):
    """A session in a few lines."""

    sessionId: str
    agent: str
    model: NotRequired[str]
    title: NotRequired[str]
    cwd: NotRequired[str]
    createdAt: str
    updatedAt: str
    revision: int
    lastSeq: int
    epoch: str
    status: Literal["idle", "running", "inputRequired"]
    archived: NotRequired[bool]
    open: bool
    parentSessionId: NotRequired[str]
    serviceSessionId: NotRequired[str]
    usage: NotRequired[Usage]
    metadata: NotRequired[JsonObject]


class ProviderStatus(TypedDict):
    """Whether a session's provider can work."""

    sourceId: str
    type: str
    status: Literal["ready", "loading", "unavailable"]
    detail: NotRequired[str]


class WireWarning(TypedDict):
    """Something the host should know that is no error."""

    kind: str
    message: str
    sourceId: NotRequired[str]
    data: NotRequired[Json]


class CreateSessionResult(TypedDict):
    """The session, open in this process."""

    session: SessionInfo
    configOptions: list[ConfigOption]
    providers: list[ProviderStatus]
    lastSeq: int
    warnings: NotRequired[list[WireWarning]]


class MemoryScope(TypedDict):
    """Whose memory: each key that is given matches exactly. At least one is given, and none is blank."""

    applicationId: NotRequired[str]
    agentId: NotRequired[str]
    sessionId: NotRequired[str]
    userId: NotRequired[str]


class DeleteMemoriesParams(TypedDict):
    """Erase what is remembered in a scope: some memories, or `all` of them."""

    type: NotRequired[Literal["chat_history_memory", "file_memory"]]
    scope: MemoryScope
    collection: NotRequired[str]
    memoryIds: NotRequired[list[str]]
    all: NotRequired[bool]


class DeleteMemoriesResult(TypedDict):
    """How much was erased."""

    deleted: int


class DocumentState(TypedDict):
    """A document that an editor keeps open."""

    uri: str
    version: NotRequired[int]
    languageId: NotRequired[str]


class EditorContextParams(TypedDict):
    """Tell what the user has before them. Asked in runs of agents with the provider `editor_context`."""

    sessionId: str
    runId: str
    kinds: list[Literal["selection", "visibleDocuments", "diagnostics"]]


class EditorRange(TypedDict):
    """A part of a document: where, as LSP counts, and what stands there."""

    uri: str
    range: NotRequired[JsonObject]
    text: NotRequired[str]


class EditorDiagnostic(TypedDict):
    """One of LSP's diagnostics, and where."""

    uri: str
    range: NotRequired[JsonObject]
    severity: NotRequired[int]
    message: str


class EditorContextResult(TypedDict):
    """What was asked for, as far as there is any."""

    selection: NotRequired[EditorRange]
    visibleDocuments: NotRequired[list[EditorRange]]
    diagnostics: NotRequired[list[EditorDiagnostic]]


class ElicitParams(TypedDict):
    """Ask a person a question."""

    sessionId: str
    runId: str
    requestId: str
    mode: Literal["form", "url"]
    message: str
    requestedSchema: NotRequired[JsonObject]
    url: NotRequired[str]


class ElicitResult(TypedDict):
    """A person's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[Json]


class Empty(TypedDict):
    """No fields."""


class ErrorData(TypedDict):
    """What a program needs to know of an error. Each kind may add fields of its own."""

    kind: str
    retryable: bool
    retryAfterMs: NotRequired[int]
    sessionId: NotRequired[str]
    runId: NotRequired[str]
    errorId: str
    detail: NotRequired[Json]


class EventError(TypedDict):
    """An error inside an event."""

    kind: str
    message: str


class ExplainRunParams(TypedDict):
    """What the model saw in a run's calls. A run under way gives the calls so far."""

    sessionId: NotRequired[str]
    runId: str
    call: NotRequired[int]


class SeenInstruction(TypedDict):
    """A piece of the system instructions, and who said it."""

    text: str
    source: Source
    tokens: int


class SeenMessage(TypedDict):
    """A message that the model saw."""

    messageId: str
    role: Literal["system", "user", "assistant", "tool"]
    source: Source
    tokens: int
    text: NotRequired[str]
    memoryIds: NotRequired[list[str]]


class SeenTool(TypedDict):
    """A tool that the model was offered."""

    name: str
    source: Source
    tokens: int


class Removed(TypedDict):
    """Something that was taken from the model, or that something else stands for."""

    what: Literal["message", "tool", "instruction"]
    ref: str
    by: Source


class ExplainedCall(TypedDict):
    """One model call."""

    index: int
    model: str
    by: NotRequired[str]
    instructions: list[SeenInstruction]
    messages: list[SeenMessage]
    tools: list[SeenTool]
    removed: NotRequired[list[Removed]]
    usage: NotRequired[Usage]
    startedAt: str
    firstTokenMs: NotRequired[int]
    durationMs: int


class HookError(TypedDict):
    """Why a hook failed."""

    kind: str
    message: str


class ProviderPhase(TypedDict):
    """One hook of a provider."""

    sourceId: str
    type: str
    phase: Literal["beforeRun", "afterRun"]
    durationMs: float
    error: NotRequired[HookError]


class ExplainRunResult(TypedDict):
    """Every model call of the run, and how long its providers took."""

    runId: str
    agent: str
    calls: list[ExplainedCall]
    providers: list[ProviderPhase]


class ExportSessionResult(TypedDict):
    """The whole session as one JSON document: `{format: "agent-sidecar/session", version: 1, …}`."""

    document: JsonObject


class ForkSessionParams(TypedDict):
    """Make a new session out of a stored one: messages and state are copied, events are not."""

    sessionId: str
    throughRunId: NotRequired[str]
    beforeRunId: NotRequired[str]
    newSessionId: NotRequired[str]
    ephemeral: NotRequired[bool]


class FoundMemory(TypedDict):
    """A memory that fits."""

    memoryId: str
    text: str
    role: NotRequired[str]
    createdAt: NotRequired[str]
    scope: MemoryScope
    sessionId: NotRequired[str]
    score: float
    count: NotRequired[int]


class GetEventsParams(TypedDict):
    """A page of a session's durable events after a cursor."""

    sessionId: str
    afterSeq: int
    epoch: NotRequired[str]
    limit: NotRequired[int]
    types: NotRequired[list[str]]
    waitMs: NotRequired[int]


class GetEventsResult(TypedDict):
    """Events as they were sent, without `prevSeq`."""

    events: list[JsonObject]
    lastSeq: int
    firstSeq: int
    hasMore: bool
    status: Literal["ok", "truncated", "epochChanged"]


class GetHistoryParams(TypedDict):
    """A page of a session's transcript, oldest first unless asked otherwise."""

    sessionId: str
    cursor: NotRequired[str]
    limit: NotRequired[int]
    order: NotRequired[Literal["asc", "desc"]]
    sources: NotRequired[list[str]]


class GetHistoryResult(TypedDict):
    """Messages with their attribution, and where the next page begins."""

    messages: list[Message]
    nextCursor: NotRequired[str]


class GetSchemaParams(TypedDict):
    """Which document to send."""

    format: NotRequired[Literal["jsonschema", "openrpc"]]


class GetSchemaResult(TypedDict):
    """The whole contract as one document."""

    schema: Json


class GetStateParams(TypedDict):
    """Look at the sidecar, a session or a run. Small and quick; works during a run. No message bodies."""

    sessionId: NotRequired[str]
    runId: NotRequired[str]
    include: NotRequired[
        list[Literal["session", "run", "queue", "providers", "state", "usage", "pending", "documents", "tools"]]
    ]
    ifRevision: NotRequired[int]


class ServerState(TypedDict):
    """The process."""

    instanceId: str
    version: str
    protocolVersion: int
    uptimeMs: int
    openSessions: int
    activeRuns: int
    rssBytes: NotRequired[int]


class WireError(TypedDict):
    """A JSON-RPC error object, with our `data`."""

    code: int
    message: str
    data: ErrorData


class RunState(TypedDict):
    """One run, as far as it has come."""

    runId: str
    status: Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
    stopReason: NotRequired[str]
    startedAt: NotRequired[str]
    endedAt: NotRequired[str]
    error: NotRequired[WireError]


class QueuedRun(TypedDict):
    """A run that waits for its turn."""

    runId: str
    position: int


class PendingRequest(TypedDict):
    """A question to the host that waits for its answer."""

    requestId: str
    kind: Literal["approval", "elicitation", "hostTool", "hostProvider"]
    runId: str
    openedAt: str
    deadline: NotRequired[str]
    payload: Json


class ProviderState(TypedDict):
    """One provider of a session."""

    sourceId: str
    type: str
    status: Literal["ready", "loading", "unavailable"]
    state: NotRequired[Json]
    lastBeforeMs: NotRequired[float]
    lastAfterMs: NotRequired[float]
    lastError: NotRequired[str]


class ToolState(TypedDict):
    """A tool of the session's agent."""

    name: str
    source: str


class GetStateResult(TypedDict):
    """What was asked for, or `unchanged`."""

    unchanged: NotRequired[Literal[True]]
    server: NotRequired[ServerState]
    session: NotRequired[SessionInfo]
    revision: NotRequired[int]
    epoch: NotRequired[str]
    lastSeq: NotRequired[int]
    activeRun: NotRequired[ActiveRun]
    run: NotRequired[RunState]
    queue: NotRequired[list[QueuedRun]]
    pendingRequests: NotRequired[list[PendingRequest]]
    providers: NotRequired[list[ProviderState]]
    state: NotRequired[JsonObject]
    usage: NotRequired[Usage]
    documents: NotRequired[list[DocumentState]]
    tools: NotRequired[list[ToolState]]


class ImportSessionParams(TypedDict):
    """Make a session from an exported document."""

    document: JsonObject
    newSessionId: NotRequired[str]


class SidecarOptions(TypedDict):
    """`initializationOptions.sidecar`: what the host says of itself."""

    protocolVersions: NotRequired[list[int]]
    clientId: NotRequired[str]
    config: NotRequired[JsonObject]
    secrets: NotRequired[dict[str, str]]
    features: NotRequired[JsonObject]
    optOutEvents: NotRequired[list[str]]
    maxMessageBytes: NotRequired[int]


class InitializationOptions(TypedDict):
    """LSP's `initializationOptions`; other programs' keys are passed over."""

    sidecar: NotRequired[SidecarOptions]


class InitializeParams(TypedDict):
    """LSP's `initialize`, as far as the sidecar itself reads it."""

    processId: NotRequired[int]
    rootUri: NotRequired[str]
    workspaceFolders: NotRequired[list[JsonObject]]
    capabilities: NotRequired[JsonObject]
    initializationOptions: NotRequired[InitializationOptions]


class InitializeResult(TypedDict):
    """LSP's answer; `capabilities.experimental.sidecar` is a `SidecarCapabilities`."""

    capabilities: JsonObject
    serverInfo: JsonObject


class ListAgentsResult(TypedDict):
    """The configured agents; `default` is always there."""

    items: list[AgentInfo]


class ListApprovalRulesResult(TypedDict):
    """Standing rules: those of the session, and those that count always."""

    items: list[ApprovalRuleInfo]


class ListMemoriesParams(TypedDict):
    """A page of what is remembered in a scope, newest first; files by name."""

    type: NotRequired[Literal["chat_history_memory", "file_memory"]]
    scope: MemoryScope
    collection: NotRequired[str]
    cursor: NotRequired[str]
    limit: NotRequired[int]


class MemoryItem(TypedDict):
    """One memory."""

    memoryId: str
    text: str
    role: NotRequired[str]
    createdAt: NotRequired[str]
    scope: MemoryScope
    sessionId: NotRequired[str]


class ListMemoriesResult(TypedDict):
    """A page of memories."""

    items: list[MemoryItem]
    nextCursor: NotRequired[str]


class ModelInfo(TypedDict):
    """A row of `listModels`."""

    model: str
    endpoint: str
    contextSize: NotRequired[int]
    tools: NotRequired[bool]
    images: NotRequired[bool]
    default: NotRequired[bool]


class ListModelsResult(TypedDict):
    """The models that are known without asking an endpoint."""

    items: list[ModelInfo]


class ProviderTypeInfo(TypedDict):
    """A row of `listProviders`."""

    type: str
    description: str
    configSchema: JsonObject


class ListProvidersResult(TypedDict):
    """The provider types, each with the JSON Schema of its config."""

    items: list[ProviderTypeInfo]


class ListSessionsParams(TypedDict):
    """A page of stored sessions, newest first."""

    cursor: NotRequired[str]
    limit: NotRequired[int]
    cwd: NotRequired[str]
    query: NotRequired[str]
    archived: NotRequired[bool]


class ListSessionsResult(TypedDict):
    """Sessions, and where the next page begins."""

    sessions: list[SessionInfo]
    nextCursor: NotRequired[str]


class ToolInfo(TypedDict):
    """A row of `listTools`."""

    name: str
    description: str
    inputSchema: JsonObject
    source: str
    approvalMode: Literal["never_require", "always_require"]


class ListToolsResult(TypedDict):
    """The tools of a session; without one, those that are registered."""

    items: list[ToolInfo]


class MessageCompleted(TypedDict):
    """A message, whole."""

    messageId: str
    role: str
    content: list[Block]


class MessageDelta(TypedDict):
    """Ephemeral. Some more text of a message."""

    messageId: str
    contentIndex: int
    text: str


class MessageStarted(TypedDict):
    """Ephemeral. A message begins."""

    messageId: str
    role: str


class ModeChanged(TypedDict):
    """Another of the session's modes counts."""

    mode: str
    previous: NotRequired[str]
    by: Literal["host", "model"]


class PlanStep(TypedDict):
    """One step of a plan."""

    id: str
    title: str
    description: NotRequired[str]
    status: Literal["pending", "inProgress", "completed"]


class PlanUpdated(TypedDict):
    """What the agent means to do: the whole plan, in the place of the one before."""

    entries: list[PlanStep]


class ProviderCompleted(TypedDict):
    """A provider's hook ended well; sent also where it added nothing."""

    sourceId: str
    type: str
    phase: Literal["beforeRun", "afterRun"]
    durationMs: float
    added: NotRequired[Added]
    removed: NotRequired[int]


class ProviderFailed(TypedDict):
    """A provider's hook failed."""

    sourceId: str
    type: str
    phase: Literal["beforeRun", "afterRun"]
    durationMs: float
    added: NotRequired[Added]
    removed: NotRequired[int]
    error: EventError


class ProviderProgress(TypedDict):
    """Ephemeral. A provider tells how far it is."""

    sourceId: str
    phase: Literal["beforeRun", "afterRun"]
    message: NotRequired[str]
    data: NotRequired[Json]


class ProviderStarted(TypedDict):
    """Ephemeral. A provider's hook begins."""

    sourceId: str
    type: str
    phase: Literal["beforeRun", "afterRun"]


class ReasoningCompleted(TypedDict):
    """The reasoning that went before a message, whole."""

    messageId: str
    text: str


class ReasoningDelta(TypedDict):
    """Ephemeral. Some more reasoning."""

    messageId: str
    text: str


class Recovered(TypedDict):
    """What opening the session had to repair."""

    interruptedRuns: list[str]
    closedCalls: list[str]
    setAside: NotRequired[Json]


class ReloadConfigResult(TypedDict):
    """How many agents there are now, and what was ignored."""

    agents: int
    warnings: list[WireWarning]


class ToolCallShown(TypedDict):
    """The call that consent is asked for."""

    callId: str
    name: str
    kind: NotRequired[str]
    arguments: JsonObject


class RequestApprovalParams(TypedDict):
    """Ask a person whether a call may run."""

    sessionId: str
    runId: str
    requestId: str
    title: str
    description: NotRequired[str]
    toolCall: ToolCallShown
    options: list[ApprovalOption]
    deadlineMs: NotRequired[int]


class RequestOpened(TypedDict):
    """The host is asked something."""

    requestId: str
    kind: Literal["approval", "elicitation", "hostTool", "hostProvider"]
    payload: Json
    deadline: NotRequired[str]


class RequestResolved(TypedDict):
    """A request to the host is open no longer."""

    requestId: str
    outcome: str
    by: Literal["client", "timeout", "cancel", "disconnect", "rule"]


class ResolveRequestParams(TypedDict):
    """Answer a request to the host in another way than by its JSON-RPC answer, also after a reconnect or restart."""

    sessionId: NotRequired[str]
    requestId: str
    result: NotRequired[Json]
    error: NotRequired[JsonObject]
    functionInvocationKwargs: NotRequired[JsonObject]
    clientKwargs: NotRequired[JsonObject]


class ResolveRequestResult(TypedDict):
    """`runId`: the run that goes on, where this was the last decision that a parked run waited for."""

    status: Literal["resolved", "alreadyResolved", "unknown"]
    runId: NotRequired[str]


class ResumeSessionParams(TypedDict):
    """Open a stored session in this process, and replay."""

    sessionId: str
    replayFrom: NotRequired[ReplayFrom]
    tools: NotRequired[list[HostTool]]
    contextProviders: NotRequired[list[ProviderEntry]]
    mcpServers: NotRequired[list[JsonObject]]


class ResumeSessionResult(TypedDict):
    """The session, open in this process; replayed events follow."""

    session: SessionInfo
    configOptions: list[ConfigOption]
    providers: list[ProviderStatus]
    activeRun: NotRequired[ActiveRun]
    pendingRequests: list[PendingRequest]
    lastSeq: int
    truncated: bool
    recovered: NotRequired[Recovered]
    warnings: NotRequired[list[WireWarning]]


class RevokeApprovalRuleParams(TypedDict):
    """Forget a standing rule. One that is not there is forgotten already."""

    ruleId: str
    sessionId: NotRequired[str]


class RunAccepted(TypedDict):
    """The answer to `run` with `wait: "accepted"`: the run is stored and will end in exactly one way."""

    runId: str
    status: Literal["running", "queued"]
    queuePosition: NotRequired[int]
    lastSeq: int


class RunCompleted(TypedDict):
    """The end of a run: exactly one, always its last event."""

    status: Literal["completed", "failed", "cancelled", "interrupted"]
    stopReason: str
    usage: Usage
    error: NotRequired[WireError]
    durationMs: int


class RunEvent(TypedDict):
    """The envelope of every event."""

    sessionId: str
    runId: NotRequired[str]
    parentRunId: NotRequired[str]
    parentCallId: NotRequired[str]
    seq: int
    sub: NotRequired[int]
    prevSeq: NotRequired[int]
    epoch: str
    time: str
    ephemeral: NotRequired[Literal[True]]
    source: NotRequired[Source]
    type: str
    data: JsonObject


class RunOptions(TypedDict):
    """How a model call is made. A field that is absent is not sent."""

    temperature: NotRequired[float]
    topP: NotRequired[float]
    maxOutputTokens: NotRequired[int]
    toolChoice: NotRequired[Literal["auto", "none", "required"] | NamedToolChoice]
    maxTurns: NotRequired[int]
    reasoningEffort: NotRequired[str]
    seed: NotRequired[int]
    stop: NotRequired[list[str]]
    store: NotRequired[bool]
    parallelToolCalls: NotRequired[bool]
    instructions: NotRequired[str]
    model: NotRequired[str]


class RunParams(TypedDict):
    """Run an agent on some input. Without `sessionId` the run has a session of its own that ends with it."""

    sessionId: NotRequired[str]
    agent: NotRequired[str | AgentSpec]
    input: str | list[Message] | list[Block]
    runId: NotRequired[str]
    middleware: NotRequired[list[MiddlewareEntry]]
    wait: NotRequired[Literal["completed", "accepted"]]
    whenBusy: NotRequired[Literal["reject", "queue", "steer"]]
    stream: NotRequired[bool]
    context: NotRequired[list[ContextItem]]
    options: NotRequired[RunOptions]
    responseFormat: NotRequired[Json]
    properties: NotRequired[JsonObject]
    functionInvocationKwargs: NotRequired[JsonObject]
    clientKwargs: NotRequired[JsonObject]
    timeoutMs: NotRequired[int]
    workDoneToken: NotRequired[str | int]
    partialResultToken: NotRequired[str | int]


class RunQueued(TypedDict):
    """The run waits for its turn."""

    position: int


class RunResult(TypedDict):
    """How a run ended, if it did not fail. A failed run is answered by an error."""

    runId: str
    sessionId: str
    status: Literal["completed", "cancelled", "interrupted"]
    stopReason: str
    messages: list[Message]
    text: str
    value: NotRequired[Json]
    valueError: NotRequired[str]
    usage: Usage
    lastSeq: int
    durationMs: int
    warnings: list[WireWarning]
    pendingRequests: NotRequired[list[PendingRequest]]


class RunStarted(TypedDict):
    """The run has the session; its input follows as `message.completed`."""

    agent: str
    model: NotRequired[str]


class SearchMemoriesParams(TypedDict):
    """What is remembered in a scope and fits a question, best first."""

    type: NotRequired[Literal["chat_history_memory", "file_memory"]]
    scope: MemoryScope
    collection: NotRequired[str]
    query: str
    limit: NotRequired[int]


class SearchMemoriesResult(TypedDict):
    """What fits."""

    items: list[FoundMemory]


class SessionClosed(TypedDict):
    """`session/closed`: a session is no longer open here, or no longer there at all."""

    sessionId: str
    reason: Literal["closed", "deleted"]


class SessionOrNone(TypedDict):
    """Of one session, or of none."""

    sessionId: NotRequired[str]


class SessionParams(TypedDict):
    """A request about one session."""

    sessionId: str


class SessionResult(TypedDict):
    """A session in a few lines."""

    session: SessionInfo


class SessionUpdated(TypedDict):
    """`session/updated`: a session's labels or settings have changed."""

    session: SessionInfo


class StateChanged(TypedDict):
    """The session's state has a new revision."""

    revision: int
    keys: list[str]


class SteerRunParams(TypedDict):
    """Add input to a run under way; it joins the run's next model call."""

    sessionId: str
    expectedRunId: str
    input: str | list[Message] | list[Block]


class SteerRunResult(TypedDict):
    """`accepted` false: the run had its answer already; send a new run."""

    runId: str
    accepted: bool


class ToolCompleted(TypedDict):
    """A call has its one result."""

    callId: str
    name: str
    status: Literal["completed", "failed", "denied", "cancelled", "unknown", "notRun"]
    content: list[Block]
    structuredContent: NotRequired[Json]
    durationMs: float


class ToolDelta(TypedDict):
    """Ephemeral. What a tool tells while it works."""

    callId: str
    text: str


class ToolStarted(TypedDict):
    """A call begins to run, or waits for its approval (`pending`; sent again when it runs)."""

    callId: str
    name: str
    title: NotRequired[str]
    kind: NotRequired[str]
    arguments: JsonObject
    status: Literal["pending", "running"]


class TrustFolderParams(TypedDict):
    """The user's word on a workspace, passed on by the host."""

    path: str
    trusted: bool


class UpdateSessionParams(TypedDict):
    """Change a session's settings, labels or state. Fields that are absent stay as they are."""

    sessionId: str
    title: NotRequired[str]
    metadata: NotRequired[JsonObject]
    archived: NotRequired[bool]
    configOptions: NotRequired[JsonObject]
    statePatch: NotRequired[JsonObject]
    ifRevision: NotRequired[int]


class UpdateSessionResult(TypedDict):
    """The session as it is now."""

    session: SessionInfo
    configOptions: list[ConfigOption]


class UsageUpdated(TypedDict):
    """Tokens so far."""

    run: Usage
    session: Usage
    contextUsed: NotRequired[int]
    contextSize: NotRequired[int]


class WarningEvent(TypedDict):
    """Something went wrong that did not end the run."""

    kind: str
    message: str
    willRetry: NotRequired[bool]
    attempt: NotRequired[int]


class RunKeywords(TypedDict):
    """What of `RunParams` is given by keyword."""

    runId: NotRequired[str]
    middleware: NotRequired[list[MiddlewareEntry]]
    whenBusy: NotRequired[Literal["reject", "queue", "steer"]]
    stream: NotRequired[bool]
    context: NotRequired[list[ContextItem]]
    options: NotRequired[RunOptions]
    responseFormat: NotRequired[Json]
    properties: NotRequired[JsonObject]
    functionInvocationKwargs: NotRequired[JsonObject]
    clientKwargs: NotRequired[JsonObject]
    timeoutMs: NotRequired[int]
    workDoneToken: NotRequired[str | int]
    partialResultToken: NotRequired[str | int]


class OneOffKeywords(TypedDict):
    """What of `RunParams` is given by keyword."""

    agent: NotRequired[str | AgentSpec]
    runId: NotRequired[str]
    middleware: NotRequired[list[MiddlewareEntry]]
    whenBusy: NotRequired[Literal["reject", "queue", "steer"]]
    stream: NotRequired[bool]
    context: NotRequired[list[ContextItem]]
    options: NotRequired[RunOptions]
    responseFormat: NotRequired[Json]
    properties: NotRequired[JsonObject]
    functionInvocationKwargs: NotRequired[JsonObject]
    clientKwargs: NotRequired[JsonObject]
    timeoutMs: NotRequired[int]
    workDoneToken: NotRequired[str | int]
    partialResultToken: NotRequired[str | int]


class CreateKeywords(TypedDict):
    """What of `CreateSessionParams` is given by keyword."""

    sessionId: NotRequired[str]
    agent: NotRequired[str | AgentSpec]
    model: NotRequired[str]
    mode: NotRequired[str]
    instructions: NotRequired[str]
    cwd: NotRequired[str]
    additionalDirectories: NotRequired[list[str]]
    contextProviders: NotRequired[list[ProviderEntry]]
    mcpServers: NotRequired[list[JsonObject]]
    state: NotRequired[JsonObject]
    serviceSessionId: NotRequired[str]
    ephemeral: NotRequired[bool]
    title: NotRequired[str]
    metadata: NotRequired[JsonObject]


class ResumeKeywords(TypedDict):
    """What of `ResumeSessionParams` is given by keyword."""

    replayFrom: NotRequired[ReplayFrom]
    contextProviders: NotRequired[list[ProviderEntry]]
    mcpServers: NotRequired[list[JsonObject]]


class ResolveKeywords(TypedDict):
    """What of `ResolveRequestParams` is given by keyword."""

    error: NotRequired[JsonObject]
    functionInvocationKwargs: NotRequired[JsonObject]
    clientKwargs: NotRequired[JsonObject]


class UpdateKeywords(TypedDict):
    """What of `UpdateSessionParams` is given by keyword."""

    title: NotRequired[str]
    metadata: NotRequired[JsonObject]
    archived: NotRequired[bool]
    configOptions: NotRequired[JsonObject]
    statePatch: NotRequired[JsonObject]
    ifRevision: NotRequired[int]


class ForkKeywords(TypedDict):
    """What of `ForkSessionParams` is given by keyword."""

    throughRunId: NotRequired[str]
    beforeRunId: NotRequired[str]
    newSessionId: NotRequired[str]
    ephemeral: NotRequired[bool]


class StateKeywords(TypedDict):
    """What of `GetStateParams` is given by keyword."""

    runId: NotRequired[str]
    include: NotRequired[
        list[Literal["session", "run", "queue", "providers", "state", "usage", "pending", "documents", "tools"]]
    ]
    ifRevision: NotRequired[int]


class HistoryKeywords(TypedDict):
    """What of `GetHistoryParams` is given by keyword."""

    cursor: NotRequired[str]
    limit: NotRequired[int]
    order: NotRequired[Literal["asc", "desc"]]
    sources: NotRequired[list[str]]


class EventsKeywords(TypedDict):
    """What of `GetEventsParams` is given by keyword."""

    afterSeq: int
    epoch: NotRequired[str]
    limit: NotRequired[int]
    types: NotRequired[list[str]]
    waitMs: NotRequired[int]


RunInput: TypeAlias = str | list[Message] | list[Block]
"""Text, messages, or content blocks."""


Handlers = TypedDict(
    "Handlers",
    {
        "host/callTool": Callable[[CallToolParams], Awaitable[CallToolResult]],
        "host/beforeRun": Callable[[BeforeRunParams], Awaitable[BeforeRunResult]],
        "host/afterRun": Callable[[AfterRunParams], Awaitable[AfterRunResult]],
        "host/requestApproval": Callable[[RequestApprovalParams], Awaitable[ApprovalOutcome]],
        "host/elicit": Callable[[ElicitParams], Awaitable[ElicitResult]],
        "host/getEditorContext": Callable[[EditorContextParams], Awaitable[EditorContextResult]],
    },
    total=False,
)
"""What answers the requests that the sidecar sends, by method."""
