"""What the sidecar asks of its host: tool calls, context, consent, answers to questions. Types only: nothing here asks.

A host that cannot answer a method says so with -32601, or leaves its feature out of `initialize`.
"""

from typing import Literal

from pydantic import Field

from .base import Flag, Json, JsonObject, Params, Whole, WireModel
from .messages import Block, Message, Usage
from .sessions import RunId, SessionId
from .tools import HostTool


class HostRequestParams(Params):
    """What every request to the host names."""

    session_id: str
    run_id: str
    request_id: str
    """Also names it in `resolveRequest`."""


class CallToolParams(HostRequestParams):
    """Carry out a tool of the host's. `$/progress` with the `requestId` as its token tells how it gets on."""

    call_id: str
    """The model's id of the call."""
    name: str
    arguments: JsonObject
    kwargs: JsonObject | None = None
    """The run's `functionInvocationKwargs`."""
    deadline_ms: Whole | None = None
    """After this the answer is not waited for; absent: it is."""


class CallToolResult(WireModel):
    """What a host's tool gave."""

    content: str | tuple[Block, ...]
    """Text, images, audio, resources."""
    structured_content: Json = None
    is_error: Flag | None = None


class BeforeRunParams(HostRequestParams):
    """Add context before the model is called."""

    agent: str
    source_id: str
    """Which of the host's providers is meant."""
    input_messages: tuple[Message, ...]
    context_messages: tuple[Message, ...]
    """What providers before this one have put there, the history among them."""
    instructions: tuple[str, ...]
    tools: tuple[str, ...]
    """Names of the tools that there are so far."""
    state: Json
    """The provider's own."""
    kwargs: JsonObject | None = None


class Replacement(WireModel):
    """What is to stand in place of what others have added; absent parts stay."""

    messages: tuple[Message, ...] | None = None
    instructions: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    """Names of the tools that are kept."""


class BeforeRunResult(WireModel):
    """What a host's provider adds."""

    instructions: str | tuple[str, ...] | None = None
    messages: tuple[Message, ...] | None = None
    tools: tuple[HostTool, ...] | None = None
    state: JsonObject | None = None
    """Replaces the provider's."""
    replace: Replacement | None = None


class RunResponse(WireModel):
    """What a run answered."""

    messages: tuple[Message, ...]
    text: str
    usage: Usage


class RunFailure(WireModel):
    """Why a run failed."""

    kind: str
    message: str


class AfterRunParams(BeforeRunParams):
    """Learn from a run: from its response, or from its failure."""

    response: RunResponse | None = None
    error: RunFailure | None = None
    partial_text: str | None = None


class AfterRunResult(WireModel):
    """What a host's provider remembers."""

    state: JsonObject | None = None
    """Replaces the provider's."""


class ToolCallShown(WireModel):
    """The call that consent is asked for."""

    call_id: str
    name: str
    kind: str | None = None
    arguments: JsonObject


class ApprovalOption(WireModel):
    """One answer that can be given."""

    option_id: str
    name: str
    """For people."""
    kind: Literal["allowOnce", "allowSession", "allowAlways", "rejectOnce", "rejectAlways"]


class RequestApprovalParams(HostRequestParams):
    """Ask a person whether a call may run."""

    title: str
    description: str | None = None
    tool_call: ToolCallShown
    options: tuple[ApprovalOption, ...]
    deadline_ms: Whole | None = None


class ApprovalOutcome(WireModel):
    """A person's answer. Anything but a known option denies the call."""

    outcome: str
    """`selected` or `cancelled`."""
    option_id: str | None = None
    message: str | None = None
    """For the model, where the call is rejected."""


class ElicitParams(HostRequestParams):
    """Ask a person a question."""

    mode: Literal["form", "url"]
    message: str
    requested_schema: JsonObject | None = None
    url: str | None = None


class ElicitResult(WireModel):
    """A person's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: Json = None


class EditorContextParams(Params):
    """Tell what the user has before them. Asked in runs of agents with the provider `editor_context`."""

    session_id: str
    run_id: str
    kinds: tuple[Literal["selection", "visibleDocuments", "diagnostics"], ...]


class EditorRange(WireModel):
    """A part of a document: where, as LSP counts, and what stands there."""

    uri: str
    range: JsonObject | None = None
    text: str | None = None


class EditorDiagnostic(WireModel):
    """One of LSP's diagnostics, and where."""

    uri: str
    range: JsonObject | None = None
    severity: Whole | None = None
    """1: error, 2: warning, 3: information, 4: hint."""
    message: str


class EditorContextResult(WireModel):
    """What was asked for, as far as there is any."""

    selection: EditorRange | None = None
    visible_documents: tuple[EditorRange, ...] | None = None
    diagnostics: tuple[EditorDiagnostic, ...] | None = None


class ResolveRequestParams(Params):
    """Answer a request to the host in another way than by its JSON-RPC answer, also after a reconnect or restart."""

    session_id: SessionId | None = None
    request_id: str = Field(max_length=256)
    result: Json = None
    """What the request itself would have been answered."""
    error: JsonObject | None = None
    """Instead: the host could not. It denies an approval."""
    function_invocation_kwargs: JsonObject | None = None
    """For the run that goes on from it."""
    client_kwargs: JsonObject | None = None


class ResolveRequestResult(WireModel):
    """`runId`: the run that goes on, where this was the last decision that a parked run waited for."""

    status: Literal["resolved", "alreadyResolved", "unknown"]
    run_id: RunId | None = None
