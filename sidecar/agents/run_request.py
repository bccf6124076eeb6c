"""What one run is about, and where it finds its model. Runs nothing."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.delegation import Delegate
from providers.api.host import Host
from providers.api.ports import ChatClient

from .consent import Consent, ParkedAnswer
from .metering import Meter
from .parts import BoundMiddleware


class ModelSource(Protocol):
    """Where a run finds its model."""

    def get(self, model: str) -> ChatClient:
        """The client of `endpoint:model`."""
        ...

    async def ready(self, model: str) -> ChatClient:
        """The same, once it can tell its traits."""
        ...

    async def default(self) -> str:
        """The model of an agent that names none."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What one run is about."""

    run_id: str
    input_messages: tuple[Message, ...]
    options: RunOptions
    """The agent's and the run's, merged."""
    run_instructions: str | None = None
    response_schema: JsonObject | None = None
    client_kwargs: JsonObject = field(default_factory=dict[str, Any])
    kwargs: JsonObject = field(default_factory=dict[str, Any])
    """For tools and function middleware; stored nowhere."""
    middleware: tuple[BoundMiddleware, ...] = ()
    """The run's own, inside the agent's."""
    context_messages: tuple[Message, ...] = ()
    """Messages of the run itself that stand before the input and are not kept."""
    properties: JsonObject = field(default_factory=dict[str, Any])
    """What the host says of this run; stored nowhere."""
    parent_run_id: str | None = None
    depth: int = 0
    """How many runs this one is delegated through."""
    delegate: Delegate | None = None
    """Runs other agents within this run."""
    host: Host | None = None
    """Whom it can ask."""
    consent: Consent | None = None
    """Who asks for consent to its tool calls; `None`: nobody can."""
    parked: ParkedAnswer | None = None
    """Calls that an earlier run ended with, decided by now: the run begins with them."""
    parked_messages: tuple[Message, ...] = ()
    """What that run has said."""
    joining: tuple[Message, ...] = ()
    """Input of this run's own that comes after those calls."""
    open_call_ids: frozenset[str] = frozenset()
    """Of calls that the conversation has open."""
    shares_state: bool = False
    """Others write the session's state at the same time: it is another run's."""
    meter: Meter = field(default_factory=Meter)
    """Counts its model calls."""
    is_streaming: bool = True
