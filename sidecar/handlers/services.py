"""What handlers are given: the parts of the running sidecar, and the request that they answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from protocol.base import JsonObject, WireModel
from protocol.state import DocumentState
from sidecar.agents.catalog import AgentCatalog
from sidecar.errors import SidecarError
from sidecar.models.registry import Models
from sidecar.sessions.manager import SessionManager
from sidecar.sessions.tickets import RunTicket, Tickets


class Documents(Protocol):
    """The documents that an editor keeps open."""

    def list(self) -> tuple[DocumentState, ...]:
        """All of them."""
        ...


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The process, as `getState` shows it."""

    instance_id: str
    started: float
    """Monotonic clock, seconds."""


@dataclass(slots=True)
class Services:
    """The running sidecar."""

    facts: ServerFacts
    sessions: SessionManager
    catalog: AgentCatalog
    models: Models
    tickets: Tickets
    documents: Documents
    keep_event_runs: int
    config_error: SidecarError | None = None
    """The configuration is refused: whatever needs it is refused with this."""

    async def model_names(self) -> list[str]:
        """The models that are known without asking an endpoint."""
        return [info.model for info in await self.models.infos()]


@dataclass(slots=True)
class Call:
    """One request: what a handler may know of it besides its params."""

    request_id: str | int
    raw: JsonObject
    """The params as they were sent."""
    leave_lane: Callable[[], None]
    """Let the session's next request begin."""
    ticket: RunTicket | None = None
    """The run's, made when its request was read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with something to send right after it."""

    result: WireModel
    then: Callable[[], Awaitable[None]]
