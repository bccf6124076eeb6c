"""A session that is open in this process, on a store that can be held up or broken. Tests only."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from protocol.agents import AgentSpec, RunOptions
from protocol.base import JsonObject
from protocol.messages import text_message
from providers.api.provider import Surroundings
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.plan import SessionSettings, make_plan
from sidecar.sessions.admission import Admission, RunSetup
from sidecar.sessions.event_log import EventLog
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.outlet import Outlet
from sidecar.sessions.record import SessionRecord
from sidecar.sessions.tickets import RunTicket, Tickets
from sidecar.sessions.transcript import Transcript
from sidecar.sessions.turn_request import TurnRequest
from sidecar.stores.base import Owner, Unavailable, Unit
from sidecar.stores.memory import MemoryStore
from tests.bench.fake_client import FakeClient, FakeModels

TIME = "2026-01-01T00:00:00.000000Z"


class GatedStore(MemoryStore):
    """Commits wait while `gate` is clear, and fail while `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken = False
        self.held = asyncio.Event()
        """A commit has come to the closed gate."""

    async def commit(self, unit: Unit) -> int:
        """See `SessionStore.commit`."""
        if not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        if self.broken:
            raise Unavailable("no room")
        return await super().commit(unit)


@dataclass
class Here:
    """The session, and what it sent."""

    session: OpenSession
    store: GatedStore
    setup: RunSetup
    sent: list[JsonObject] = field(default_factory=list)
    tickets: Tickets = field(default_factory=Tickets)

    def start(self, text: str, run_id: str, when_busy: str = "reject") -> "asyncio.Task[Any]":
        """Begin a run."""
        return asyncio.create_task(self.admission(text, self.ticket(run_id)).run(when_busy))

    def cancel(self, run_id: str) -> None:
        """Ask a run to stop."""
        ticket = self.tickets.find(self.session.session_id, run_id)
        assert ticket is not None
        ticket.cancel()

    def ticket(self, run_id: str) -> RunTicket:
        """A run's ticket."""
        return self.tickets.register(self.session.session_id, run_id)

    def admission(self, text: str, ticket: RunTicket) -> Admission:
        """A run on its way."""
        request = TurnRequest((text_message("user", text),), RunOptions(), payload_hash=text)
        return Admission(self.session, ticket, request, self.setup, lambda: None, None)

    def ends(self, run_id: str) -> list[JsonObject]:
        """The ends of a run that were told."""
        return [
            event["data"] for event in self.sent if event["type"] == "run.completed" and event.get("runId") == run_id
        ]

    async def stored(self, kind: str) -> list[str | None]:
        """The runs that stored events of a type are of, in order."""
        page = await self.store.events(self.session.session_id, 0, 1000, 1 << 30)
        return [stored.event.run_id for stored in page.items if stored.event.type == kind]

    async def unfinished(self) -> list[str]:
        """The runs whose stored record has no end."""
        return [run.run_id for run in (await self.store.load(self.session.session_id)).unfinished_runs]


async def open_here(client: FakeClient, *, max_queued: int = 16) -> Here:
    """A session with a history, and this model."""
    sent: list[JsonObject] = []

    async def breathe() -> None:
        return None

    outlet = Outlet(sent.append, lambda: False, breathe, lambda method, params: None)
    store = GatedStore()
    await store.open(Owner(id="me", pid=1, since=TIME))
    record = SessionRecord(session_id="s", agent="a", created_at=TIME, updated_at=TIME, epoch="ep")
    first = Unit(id="u", session="s", epoch=1, expect_seq=0, puts=(record.put(),))
    lease = await store.create("s", first)
    transcript = Transcript(store, "s", 1 << 20)
    agent = ResolvedAgent("a", AgentSpec(model="fake:model"))
    plan = make_plan(agent, SessionSettings(), Surroundings(history=transcript))
    workspace: Any = SimpleNamespace(models=FakeModels(client))
    log = EventLog(store, lease, record.epoch, outlet)
    session = OpenSession(record, workspace, plan, store, log, transcript, {})
    tickets = Tickets()
    setup = RunSetup(outlet, tickets, keep_event_runs=200, max_queued=max_queued, max_queued_total=1024)
    return Here(session, store, setup, sent, tickets)
