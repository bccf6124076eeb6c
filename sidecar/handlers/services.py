"""What handlers are given: the parts of the running sidecar, and the request that they answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from protocol.base import JsonObject, WireModel
from protocol.memories import ListMemoriesParams
from protocol.sessions import ListSessionsParams
from protocol.state import DocumentState, GetEventsParams, GetHistoryParams
from providers.api.editor import Editor
from sidecar.agents.workspaces import Workspaces
from sidecar.errors import SidecarError
from sidecar.sessions.admission import RunSetup
from sidecar.sessions.manager import SessionManager
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.tickets import RunTicket, Tickets


class Documents(Editor, Protocol):
    """The documents that an editor keeps open, as handlers read them."""

    async def settled(self) -> None:
        """Wait until everything that the editor has sent so far is taken in."""
        ...

    def list(self) -> tuple[DocumentState, ...]:
        """All of them."""
        ...

    def text(self, uri: str) -> tuple[str, int] | None:
        """Text and version of one, unsaved changes included; `None` if it is not open."""
        ...


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The process, as `getState` shows it."""

    instance_id: str
    started: float
    """Monotonic clock, seconds."""


Paged = GetEventsParams | GetHistoryParams | ListMemoriesParams | ListSessionsParams
"""Params of a request for a page."""


@dataclass(frozen=True, slots=True)
class Pages:
    """How long a page of results may be."""

    default: int
    """Items, where the request names no number."""
    most: int
    """Items, whatever the request names."""
    bytes: int
    """What a page aims at; it holds at least one item."""

    def items(self, params: Paged) -> int:
        """The most items that the answer may hold."""
        return min(params.limit, self.most) if "limit" in params.model_fields_set else self.default


@dataclass(slots=True)
class Services:
    """The running sidecar."""

    facts: ServerFacts
    sessions: SessionManager
    workspaces: Workspaces
    tickets: Tickets
    documents: Documents
    run_setup: RunSetup
    pages: Pages
    config_error: SidecarError | None = None
    """The configuration is refused: whatever needs it is refused with this."""

    async def model_names(self, session: OpenSession) -> list[str]:
        """The models that are known where a session works, without asking an endpoint."""
        return [info.model for info in await session.workspace.models.infos()]


@dataclass(slots=True)
class Call:
    """One request: what a handler may know of it besides its params."""

    request_id: str | int
    raw: JsonObject
    """The params as they were sent."""
    leave_lane: Callable[[], None]
    """Let the session's next request begin."""
    answer: Callable[[WireModel], None]
    """Answer before the handler's work is done; what it returns or raises afterwards is not told."""
    ticket: RunTicket | None = None
    """The run's, made when its request was read."""

    @property
    def run_ticket(self) -> RunTicket:
        """The ticket of a `run`."""
        if self.ticket is None:
            raise TypeError("only a run has a ticket")
        return self.ticket


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with something to send right after it."""

    result: WireModel
    then: Callable[[], Awaitable[None]]
