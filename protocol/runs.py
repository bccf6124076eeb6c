"""What a host sends to start or stop a run, and what it gets back. Types only: nothing here runs."""

from typing import Annotated, Literal

from pydantic import Field

from .agents import AgentSpec, MiddlewareEntry, RunOptions
from .base import Flag, Json, JsonObject, Params, Whole, WireModel
from .messages import Block, Message, Usage
from .sessions import PendingRequest, RunId, SessionId, WireWarning

RunStatus = Literal["completed", "cancelled", "interrupted"]

StopReason = Literal[
    "endTurn",
    "maxTokens",
    "maxTurns",
    "refusal",
    "contentFilter",
    "cancelled",
    "inputRequired",
    "timeout",
    "interrupted",
    "error",
]

RunInput = Annotated[str | tuple[Message, ...] | tuple[Block, ...], Field(union_mode="left_to_right")]


class ContextItem(WireModel):
    """A document that the run is about."""

    uri: str
    range: JsonObject | None = None
    version: Whole | None = None
    text: str | None = None


class RunParams(Params):
    """Run an agent on some input. Without `sessionId` the run has a session of its own that ends with it."""

    session_id: SessionId | None = None
    agent: str | AgentSpec | None = None
    """Only without `sessionId`."""
    input: RunInput
    """A string, content blocks, or messages. Blank input is legal."""
    run_id: RunId | None = None
    """Minted by the client, so that the request can be sent again."""
    middleware: tuple[MiddlewareEntry, ...] | None = None
    wait: Literal["completed", "accepted"] = "completed"
    when_busy: Literal["reject", "queue", "steer"] = "reject"
    """`steer`: join the run under way; with `context`, `options` or `responseFormat` of its own, queue."""
    stream: Flag = True
    """False: no ephemeral events."""
    context: tuple[ContextItem, ...] | None = None
    options: RunOptions | None = None
    response_format: Json = None
    """A JSON Schema, or OpenAI's `{type:"json_schema", json_schema:{…}}` around one."""
    properties: JsonObject | None = None
    function_invocation_kwargs: JsonObject | None = None
    client_kwargs: JsonObject | None = None
    timeout_ms: Whole | None = Field(default=None, gt=0)
    work_done_token: str | Whole | None = None
    partial_result_token: str | Whole | None = None


class RunResult(WireModel):
    """How a run ended, if it did not fail. A failed run is answered by an error."""

    run_id: str
    session_id: str
    status: RunStatus
    stop_reason: str
    messages: tuple[Message, ...]
    """The run's output. Of a run that was cut it may end in a message marked `partial`."""
    text: str
    value: Json = None
    """The answer as JSON, where a `responseFormat` was given and it parsed."""
    value_error: str | None = None
    """Why there is no `value`."""
    usage: Usage
    last_seq: int
    duration_ms: int
    warnings: tuple[WireWarning, ...]
    pending_requests: tuple[PendingRequest, ...] | None = None


class CancelRunParams(Params):
    """Ask a run to stop. Answered at once, whatever the run is doing."""

    session_id: SessionId | None = None
    run_id: RunId | None = None
    """The run to stop; the session's active run if absent."""
    reason: str | None = None


class CancelRunResult(WireModel):
    """`alreadyFinished`: a known run that has ended. `notRunning`: there is none."""

    status: Literal["cancelling", "alreadyFinished", "notRunning"]


class RunAccepted(WireModel):
    """The answer to `run` with `wait: "accepted"`: the run is stored and will end in exactly one way."""

    run_id: str
    status: Literal["running", "queued"]
    queue_position: int | None = None
    """1 for the run that is next."""
    last_seq: int


class SteerRunParams(Params):
    """Add input to a run under way; it joins the run's next model call."""

    session_id: SessionId
    expected_run_id: RunId
    """The run that is meant; another one, or none, is `runNotFound`."""
    input: RunInput


class SteerRunResult(WireModel):
    """`accepted` false: the run had its answer already; send a new run."""

    run_id: str
    accepted: bool
