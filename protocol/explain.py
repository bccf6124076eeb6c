"""What the model saw in each call of a run, and from whom: the shapes of `explainRun`. Types only."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Params, Whole, WireModel
from .messages import Role, Source, Usage
from .sessions import RunId, SessionId


class ExplainRunParams(Params):
    """What the model saw in a run's calls. A run under way gives the calls so far."""

    session_id: SessionId | None = None
    """Left out for a one-off run."""
    run_id: RunId
    call: Annotated[Whole, Field(ge=0)] | None = None
    """Only the call of this `index`."""


class SeenInstruction(WireModel):
    """A piece of the system instructions, and who said it."""

    text: str
    source: Source
    tokens: int
    """Estimated, as everywhere here but in `usage`."""


class SeenMessage(WireModel):
    """A message that the model saw."""

    message_id: str
    """Of a message that has none: its source, and a number within the run."""
    role: Role
    source: Source
    """`history` for what a history has loaded, whoever said it once."""
    tokens: int
    text: str | None = None
    """Only of what was put before the model for this run: by a provider, by middleware, or with the run.

    Memories stand in it as they are kept now; one that was erased is gone.
    """
    memory_ids: tuple[str, ...] | None = None
    """The memories that it is made from, where its provider says so."""


class SeenTool(WireModel):
    """A tool that the model was offered."""

    name: str
    source: Source
    tokens: int


class Removed(WireModel):
    """Something that was taken from the model, or that something else stands for."""

    what: Literal["message", "tool", "instruction"]
    ref: str
    """A message's id, a tool's name, or the beginning of an instruction's text."""
    by: Source


class ExplainedCall(WireModel):
    """One model call."""

    index: int
    """From 0, in the order in which the calls began."""
    model: str
    by: str | None = None
    """The `sourceId` of the provider that made the call for itself; absent for the run's own calls."""
    instructions: tuple[SeenInstruction, ...]
    messages: tuple[SeenMessage, ...]
    """In the order in which they were sent."""
    tools: tuple[SeenTool, ...]
    removed: tuple[Removed, ...] | None = None
    usage: Usage | None = None
    """Absent while the call is under way, and where it failed before its first word."""
    started_at: str
    first_token_ms: int | None = None
    duration_ms: int
    """So far, while it is under way."""


class HookError(WireModel):
    """Why a hook failed."""

    kind: str
    message: str


class ProviderPhase(WireModel):
    """One hook of a provider."""

    source_id: str
    type: str
    phase: Literal["beforeRun", "afterRun"]
    duration_ms: float
    error: HookError | None = None


class ExplainRunResult(WireModel):
    """Every model call of the run, and how long its providers took."""

    run_id: str
    agent: str
    calls: tuple[ExplainedCall, ...]
    providers: tuple[ProviderPhase, ...]
    """In the order in which their hooks ended."""
