"""The events of a run and of a session: one notification, `run/event`, with a typed envelope.

These models are the contract. The sidecar sends plain dictionaries of these shapes, because an event is too hot a path
to build a model for; the tests hold every event that is sent against them.
"""

from typing import Literal

from .base import Json, JsonObject, WireModel
from .errors import WireError
from .messages import Block, Source, Usage
from .sessions import RequestKind

Phase = Literal["beforeRun", "afterRun"]


class RunQueued(WireModel):
    """The run waits for its turn."""

    position: int


class RunStarted(WireModel):
    """The run has the session; its input follows as `message.completed`."""

    agent: str
    model: str | None = None


class ProviderStarted(WireModel):
    """Ephemeral. A provider's hook begins."""

    source_id: str
    type: str
    phase: Phase


class ProviderProgress(WireModel):
    """Ephemeral. A provider tells how far it is."""

    source_id: str
    phase: Phase
    message: str | None = None
    data: Json = None


class Added(WireModel):
    """What a provider put before the model. Tokens are estimated."""

    instructions: int = 0
    messages: int = 0
    tools: int = 0
    middleware: int = 0
    tokens: int = 0


class EventError(WireModel):
    """An error inside an event."""

    kind: str
    message: str


class ProviderCompleted(WireModel):
    """A provider's hook ended well; sent also where it added nothing."""

    source_id: str
    type: str
    phase: Phase
    duration_ms: float
    added: Added | None = None
    removed: int | None = None


class ProviderFailed(ProviderCompleted):
    """A provider's hook failed."""

    error: EventError


class MessageStarted(WireModel):
    """Ephemeral. A message begins."""

    message_id: str
    role: str


class MessageDelta(WireModel):
    """Ephemeral. Some more text of a message."""

    message_id: str
    content_index: int
    text: str


class MessageCompleted(WireModel):
    """A message, whole."""

    message_id: str
    role: str
    content: tuple[Block, ...]


class ReasoningDelta(WireModel):
    """Ephemeral. Some more reasoning."""

    message_id: str
    text: str


class ReasoningCompleted(WireModel):
    """The reasoning that went before a message, whole."""

    message_id: str
    text: str


class ToolStarted(WireModel):
    """A call begins to run, or waits for its approval (`pending`; sent again when it runs)."""

    call_id: str
    name: str
    title: str | None = None
    kind: str | None = None
    arguments: JsonObject
    status: Literal["pending", "running"]


class ToolDelta(WireModel):
    """Ephemeral. What a tool tells while it works."""

    call_id: str
    text: str


class ToolCompleted(WireModel):
    """A call has its one result."""

    call_id: str
    name: str
    status: Literal["completed", "failed", "denied", "cancelled", "unknown", "notRun"]
    content: tuple[Block, ...]
    structured_content: Json = None
    duration_ms: float


class RequestOpened(WireModel):
    """The host is asked something."""

    request_id: str
    kind: RequestKind
    payload: Json
    """The params of the request, without `kwargs`; of a provider's hook without the messages."""
    deadline: str | None = None


class RequestResolved(WireModel):
    """A request to the host is open no longer."""

    request_id: str
    outcome: str
    """`completed`, `failed`, `approved`, `denied`, `accept`, `decline` or `cancel`."""
    by: Literal["client", "timeout", "cancel", "disconnect", "rule"]


class StateChanged(WireModel):
    """The session's state has a new revision."""

    revision: int
    keys: tuple[str, ...]


class ModeChanged(WireModel):
    """Another of the session's modes counts."""

    mode: str
    previous: str | None = None
    by: Literal["host", "model"]


class PlanStep(WireModel):
    """One step of a plan."""

    id: str
    title: str
    description: str | None = None
    status: Literal["pending", "inProgress", "completed"]


class PlanUpdated(WireModel):
    """What the agent means to do: the whole plan, in the place of the one before."""

    entries: tuple[PlanStep, ...]


class UsageUpdated(WireModel):
    """Tokens so far."""

    run: Usage
    session: Usage
    context_used: int | None = None
    """Tokens of the agent's last model call, what it was given and what it answered."""
    context_size: int | None = None
    """Tokens that its model takes, where that is known."""


class WarningEvent(WireModel):
    """Something went wrong that did not end the run."""

    kind: str
    message: str
    will_retry: bool | None = None
    attempt: int | None = None


class RunCompleted(WireModel):
    """The end of a run: exactly one, always its last event."""

    status: Literal["completed", "failed", "cancelled", "interrupted"]
    stop_reason: str
    usage: Usage
    error: WireError | None = None
    duration_ms: int


EVENTS: dict[str, type[WireModel]] = {
    "run.queued": RunQueued,
    "run.started": RunStarted,
    "provider.started": ProviderStarted,
    "provider.progress": ProviderProgress,
    "provider.completed": ProviderCompleted,
    "provider.failed": ProviderFailed,
    "message.started": MessageStarted,
    "message.delta": MessageDelta,
    "message.completed": MessageCompleted,
    "reasoning.delta": ReasoningDelta,
    "reasoning.completed": ReasoningCompleted,
    "tool.started": ToolStarted,
    "tool.delta": ToolDelta,
    "tool.completed": ToolCompleted,
    "request.opened": RequestOpened,
    "request.resolved": RequestResolved,
    "plan.updated": PlanUpdated,
    "mode.changed": ModeChanged,
    "state.changed": StateChanged,
    "usage.updated": UsageUpdated,
    "warning": WarningEvent,
    "run.completed": RunCompleted,
}
"""Event type → the shape of its `data`. A client survives types that it does not know."""

EPHEMERAL = frozenset(
    {"provider.started", "provider.progress", "message.started", "message.delta", "reasoning.delta", "tool.delta"}
)
"""Types that take no `seq` of their own and are not replayed."""


class RunEvent(WireModel):
    """The envelope of every event."""

    session_id: str
    run_id: str | None = None
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    seq: int
    """Of a durable event: its own, 1, 2, 3 … in the session. Of an ephemeral one: that of the last durable event."""
    sub: int | None = None
    """Counts ephemeral events after `seq`."""
    prev_seq: int | None = None
    """The seq of the durable event that this client was sent before."""
    epoch: str
    time: str
    ephemeral: Literal[True] | None = None
    source: Source | None = None
    type: str
    data: JsonObject
    """Shaped by `type`: see `EVENTS`."""
