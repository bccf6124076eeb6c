"""What a host asked for with `run`, checked and looked up. Does nothing."""

from collections.abc import Callable
from dataclasses import dataclass

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message
from sidecar.agents.parts import BoundMiddleware

from .approvals import Held


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a host asked for."""

    input_messages: tuple[Message, ...]
    """Without ids; the turn stamps them."""
    options: RunOptions
    payload_hash: str
    response_schema: JsonObject | None = None
    client_kwargs: JsonObject | None = None
    kwargs: JsonObject | None = None
    """`functionInvocationKwargs`."""
    middleware: tuple[BoundMiddleware, ...] = ()
    timeout_ms: int | None = None
    stream: bool = True
    properties: JsonObject | None = None
    context_messages: tuple[Message, ...] = ()
    """Documents that the host sent along: seen by the model, not kept in the transcript."""
    event_extra: JsonObject | None = None
    """Fields for the envelope of `run.started`, as sent."""
    on_begun: Callable[[int], None] | None = None
    """Called with the last seq when the run is stored, before its first event is sent."""
    goes_on_with: Held | None = None
    """Decided calls of an earlier run that this one is for."""
    only_decides: bool = False
    """Its input was approvals and nothing else."""
    work_done_token: str | int | None = None
    partial_result_token: str | int | None = None

    @property
    def may_join(self) -> bool:
        """It is input and nothing else: options, documents and a format are of a run of their own."""
        own = self.context_messages or self.response_schema is not None or self.middleware or self.kwargs
        return not own and self.options == RunOptions()
