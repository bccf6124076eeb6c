"""What a host can be asked for: the requests that the sidecar sends, each with the type of what answers it.

A handler is an asynchronous function from params to result. Its task is cancelled when the sidecar takes the request
back or ends. An `RpcError` that it raises is the answer; of any other exception the sidecar is told nothing but that
the handler failed. The features that the handlers amount to are declared in `initialize`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from .types import Block, HostTool, Json, JsonObject, Message, Usage

RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers a request of the sidecar: takes its params, returns its result, or raises `RpcError`."""


class CallToolParams(TypedDict):
    """`host/callTool`: carry out a call of one of the host's tools."""

    sessionId: str
    runId: str
    callId: str
    requestId: str
    name: str
    arguments: JsonObject
    kwargs: NotRequired[JsonObject]
    deadlineMs: NotRequired[int]


class CallToolResult(TypedDict):
    """What the tool gave; `isError` tells the model that it failed."""

    content: str | list[Block]
    structuredContent: NotRequired[Json]
    isError: NotRequired[bool]


class BeforeRunParams(TypedDict):
    """`host/beforeRun`: a provider of the host's may add to what the model will see."""

    sessionId: str
    runId: str
    agent: str
    sourceId: str
    inputMessages: list[Message]
    contextMessages: list[Message]
    instructions: list[str]
    tools: list[str]
    state: Json
    kwargs: NotRequired[JsonObject]


class BeforeRunResult(TypedDict, total=False):
    """What is added; `replace` puts others in the place of what is there, `state` replaces the provider's."""

    instructions: str | list[str]
    messages: list[Message]
    tools: list[HostTool]
    state: Json
    replace: JsonObject


class RunResponse(TypedDict):
    """What a run that went well has answered."""

    messages: list[Message]
    text: str
    usage: Usage


class AfterRunParams(BeforeRunParams):
    """`host/afterRun`: a provider of the host's learns how the run ended: by `response` or by `error`."""

    response: NotRequired[RunResponse]
    error: NotRequired[JsonObject]
    partialText: NotRequired[str]


class AfterRunResult(TypedDict, total=False):
    """`state` replaces the provider's."""

    state: Json


class ApprovalOption(TypedDict):
    """One answer that may be given."""

    optionId: str
    name: str
    kind: str


class RequestApprovalParams(TypedDict):
    """`host/requestApproval`: may this call be made?"""

    sessionId: str
    runId: str
    requestId: str
    title: str
    description: NotRequired[str]
    toolCall: JsonObject
    options: list[ApprovalOption]
    deadlineMs: NotRequired[int]


class ApprovalSelected(TypedDict):
    """One of the options; `message` tells the model why."""

    outcome: Literal["selected"]
    optionId: str
    message: NotRequired[str]


class ApprovalCancelled(TypedDict):
    """Nobody decided: the call is denied."""

    outcome: Literal["cancelled"]


class ElicitParams(TypedDict):
    """`host/elicit`: ask the user something."""

    sessionId: str
    runId: str
    requestId: str
    mode: Literal["form", "url"]
    message: str
    requestedSchema: NotRequired[Json]
    url: NotRequired[str]


class ElicitResult(TypedDict):
    """The user's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[Json]


class EditorContextParams(TypedDict):
    """`host/getEditorContext`: what the user has before them."""

    kinds: list[str]


class EditorContext(TypedDict, total=False):
    """As much of it as was asked for and is there."""

    selection: Json
    visibleDocuments: Json
    diagnostics: Json


Handlers = TypedDict(
    "Handlers",
    {
        "host/callTool": Callable[[CallToolParams], Awaitable[CallToolResult]],
        "host/beforeRun": Callable[[BeforeRunParams], Awaitable[BeforeRunResult]],
        "host/afterRun": Callable[[AfterRunParams], Awaitable[AfterRunResult]],
        "host/requestApproval": Callable[[RequestApprovalParams], Awaitable[ApprovalSelected | ApprovalCancelled]],
        "host/elicit": Callable[[ElicitParams], Awaitable[ElicitResult]],
        "host/getEditorContext": Callable[[EditorContextParams], Awaitable[EditorContext]],
    },
    total=False,
)
"""Method → what answers it. Requests without a handler are answered "method not found"."""

_FEATURES: Final[dict[str, tuple[str, JsonObject]]] = {
    "host/callTool": ("hostTools", {}),
    "host/beforeRun": ("hostProviders", {}),
    "host/afterRun": ("hostProviders", {}),
    "host/requestApproval": ("approvals", {}),
    "host/elicit": ("elicitation", {"form": {}, "url": {}}),
    "host/getEditorContext": ("editorContext", {}),
}


def features_of(handlers: Mapping[str, object]) -> JsonObject:
    """The `features` that a client with these handlers declares."""
    return dict(_FEATURES[method] for method in handlers if method in _FEATURES)
