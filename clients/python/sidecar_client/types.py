"""The wire shapes that this client touches, as `TypedDict`s with the contract's own names. Nothing here runs.

Objects may hold more keys than are named here: a newer sidecar adds some, and they are passed through.
"""

from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, as it came or as it will be sent."""


class Usage(TypedDict):
    """Tokens of a run or a session."""

    inputTokens: int
    outputTokens: int
    cachedInputTokens: NotRequired[int]
    reasoningTokens: NotRequired[int]
    estimated: NotRequired[bool]


class RunWarning(TypedDict):
    """Something the host should know that is no error."""

    kind: str
    message: str
    sourceId: NotRequired[str]
    data: NotRequired[Any]


class Message(TypedDict):
    """One message of a transcript."""

    role: str
    content: list[JsonObject]
    messageId: NotRequired[str]
    authorName: NotRequired[str]
    source: NotRequired[JsonObject]
    runId: NotRequired[str]
    createdAt: NotRequired[str]
    metadata: NotRequired[JsonObject]


class SessionInfo(TypedDict):
    """A session in a few lines."""

    sessionId: str
    agent: str
    model: NotRequired[str]
    title: NotRequired[str]
    createdAt: str
    updatedAt: str
    revision: int
    lastSeq: int
    epoch: str
    status: str
    open: bool


class RunEvent(TypedDict):
    """The envelope of every event; `data` is shaped by `type`."""

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
    source: NotRequired[JsonObject]
    type: str
    data: JsonObject


class RunResult(TypedDict):
    """How a run ended, if it did not fail. With `wait="accepted"` only `runId`, `status` and `lastSeq` are there."""

    runId: str
    sessionId: str
    status: str
    stopReason: str
    messages: list[Message]
    text: str
    value: NotRequired[Any]
    valueError: NotRequired[str]
    usage: Usage
    lastSeq: int
    durationMs: int
    warnings: list[RunWarning]
    pendingRequests: NotRequired[list[JsonObject]]


class CancelRunResult(TypedDict):
    """What became of a wish to cancel."""

    status: Literal["cancelling", "alreadyFinished", "notRunning"]


class ProviderState(TypedDict):
    """One provider of a session."""

    sourceId: str
    type: str
    status: str
    state: NotRequired[Any]


class State(TypedDict, total=False):
    """What `getState` answers; which parts are there depends on what was asked for."""

    unchanged: Literal[True]
    server: JsonObject
    session: SessionInfo
    revision: int
    epoch: str
    lastSeq: int
    activeRun: JsonObject
    run: JsonObject
    queue: list[JsonObject]
    pendingRequests: list[JsonObject]
    providers: list[ProviderState]
    state: JsonObject
    usage: Usage
    documents: list[JsonObject]
    tools: list[JsonObject]


class History(TypedDict):
    """A page of a transcript."""

    messages: list[Message]
    nextCursor: NotRequired[str]


class CreateSessionParams(TypedDict, total=False):
    """Params of `createSession`; all may be left out."""

    sessionId: str
    agent: str | JsonObject
    model: str
    mode: str
    instructions: str
    cwd: str
    additionalDirectories: list[str]
    tools: list[JsonObject]
    contextProviders: list[JsonObject]
    mcpServers: list[JsonObject]
    state: JsonObject
    serviceSessionId: str
    ephemeral: bool
    title: str
    metadata: JsonObject


class ResumeSessionParams(TypedDict, total=False):
    """Params of `resumeSession`, beside the session's id."""

    replayFrom: JsonObject
    tools: list[JsonObject]
    contextProviders: list[JsonObject]
    mcpServers: list[JsonObject]


class RunParams(TypedDict, total=False):
    """Params of `run`, beside session and input."""

    runId: str
    middleware: list[JsonObject]
    wait: Literal["completed", "accepted"]
    whenBusy: Literal["reject", "queue", "steer"]
    stream: bool
    context: list[JsonObject]
    options: JsonObject
    responseFormat: Any
    properties: JsonObject
    functionInvocationKwargs: JsonObject
    clientKwargs: JsonObject
    timeoutMs: int


class OneOffParams(RunParams, total=False):
    """Params of a `run` without a session, beside the input."""

    agent: str | JsonObject


class GetStateParams(TypedDict, total=False):
    """Params of `getState`, beside the session's id."""

    runId: str
    include: list[str]
    ifRevision: int


class GetHistoryParams(TypedDict, total=False):
    """Params of `getHistory`, beside the session's id."""

    cursor: str
    limit: int
    order: Literal["asc", "desc"]
    sources: list[str]


class Request(TypedDict):
    """A JSON-RPC request or notification, as it arrives."""

    method: Required[str]
    id: NotRequired[str | int]
    params: NotRequired[JsonObject | None]


RunInput: TypeAlias = str | list[JsonObject] | list[Message]
"""Text, content blocks, or messages."""
