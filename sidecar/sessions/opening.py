"""Makes open sessions of what is configured and what is stored. It keeps none of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic_core import from_json

from protocol.agents import AgentSpec, ProviderEntry
from protocol.base import JsonObject
from protocol.sessions import CreateSessionParams, Recovered
from providers.api.editor import Editor
from providers.api.provider import Surroundings
from providers.api.session import Session
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.part_lookup import look_up
from sidecar.agents.plan import AgentPlan, SessionSettings, make_plan
from sidecar.agents.workspaces import Workspace, Workspaces
from sidecar.errors import IdempotencyConflict
from sidecar.stores.base import Exists, Lease, PutMessage, PutState, SessionStore, Snapshot, StoreError, Unit

from .always_rules import AlwaysRules
from .approvals import parkable
from .event_log import EventLog
from .ids import new_id
from .memory_access import MemoryAccess
from .open_session import OpenSession
from .outlet import Outlet
from .record import SessionRecord, new_record, read_record
from .recovery import repair
from .settling import settle
from .storage_errors import storage_error
from .supplied import NOTHING, Supplied
from .transcript import Transcript
from .views import promised_runs_begun


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a session works with, found before anything of it is owned."""

    record: SessionRecord
    workspace: Workspace
    plan: AgentPlan
    store: SessionStore
    transcript: Transcript
    supplied: Supplied = NOTHING


class Opener:
    """The way from a record to a session that runs can work on."""

    def __init__(
        self,
        workspaces: Workspaces,
        outlet: Outlet,
        memory: MemoryAccess,
        always_rules: AlwaysRules,
        editor: Editor | None,
        *,
        cache_bytes: int,
    ) -> None:
        self._workspaces = workspaces
        self._memory = memory
        self._outlet = outlet
        self._cache_bytes = cache_bytes
        self._always_rules = always_rules
        self._editor = editor

    async def prepare(
        self,
        record: SessionRecord,
        workspace: Workspace,
        agent: ResolvedAgent,
        store: SessionStore,
        supplied: Supplied = NOTHING,
    ) -> Prepared:
        """Everything that the session needs; nothing is stored.

        Raises:
            SidecarError: a provider is refused.
        """
        transcript = Transcript(store, record.session_id, self._cache_bytes)
        plan = await self._plan(workspace, agent, record, transcript, supplied)
        return Prepared(record, workspace, plan, store, transcript, supplied)

    async def prepare_recorded(self, record: SessionRecord, store: SessionStore) -> Prepared:
        """The same for a session whose agent and folder are looked up by its record.

        Raises:
            SidecarError: its agent is not configured, or a provider is refused.
        """
        workspace = await self._workspaces.of(record.cwd)
        return await self.prepare(record, workspace, workspace.catalog.resolve(record.agent_wanted), store)

    def settle(
        self, prepared: Prepared, state: dict[str, bytes], earlier: Mapping[str, JsonObject] | None = None
    ) -> Prepared:
        """Let the providers decide what they decide once; what was decided before counts.

        Args:
            prepared: The session.
            state: Its state.
            earlier: What was decided in the session that this one is a fork of.

        Raises:
            ConfigInvalid: the session lacks something that a provider needs.
        """
        record = prepared.record
        session = Session(record.session_id, state={key: from_json(value) for key, value in state.items()})
        settled = settle(prepared.plan, session, record.settled, earlier)
        return replace(prepared, record=record.model_copy(update={"settled": settled}))

    async def create(
        self,
        prepared: Prepared,
        state: dict[str, bytes],
        payload_hash: str | None,
        messages: Sequence[PutMessage] = (),
    ) -> Lease:
        """Store a new session and own it; with the hash of the one that is there already, own that.

        Raises:
            IdempotencyConflict: the id is taken, by one of another hash.
            SidecarError: it could not be stored.
        """
        record = prepared.record
        puts = (record.put(), *(PutState(key, value) for key, value in state.items()), *messages)
        first = Unit(id=new_id("unit"), session=record.session_id, epoch=1, expect_seq=0, puts=puts)
        try:
            return await prepared.store.create(record.session_id, first, key=payload_hash)
        except Exists:
            raise IdempotencyConflict(f"session id {record.session_id!r}", session_id=record.session_id) from None
        except StoreError as error:
            raise storage_error(error, record.session_id) from error

    async def one_off(self, wanted: str | AgentSpec | None, cwd: str | None, store: SessionStore) -> OpenSession:
        """A session of one run, created: it has no history, and nothing beside its agent's.

        Raises:
            SidecarError: the agent or a provider is refused, or it could not be stored.
        """
        workspace = await self._workspaces.of(cwd)
        agent = workspace.catalog.resolve(wanted)
        record = new_record(CreateSessionParams(agent=wanted), agent.name, cwd)
        plan = make_plan(
            agent,
            SessionSettings(),
            Surroundings(cwd=record.cwd, memory=await self._memory.ready(), editor=self._editor),
            limits=workspace.limits,
            with_history=False,
            parts=await look_up(workspace, agent),
        )
        transcript = Transcript(store, record.session_id, self._cache_bytes)
        prepared = self.settle(Prepared(record, workspace, plan, store, transcript), {})
        return self.open(prepared, await self.create(prepared, {}, None), {}, one_off=True)

    async def stored(
        self, store: SessionStore, lease: Lease, admit: Callable[[OpenSession], object]
    ) -> tuple[OpenSession, Recovered | None]:
        """A stored session that is owned here, and what a dead process left in it that was repaired.

        Args:
            store: Where it is.
            lease: The right to write it.
            admit: Told of the session before it is repaired: from then on it counts as open.

        Raises:
            SidecarError: it could not be read or repaired, its agent is no longer configured, or a provider is refused.
        """
        try:
            snapshot = await store.load(lease.session)
            prepared = await self.prepare_recorded(read_record(snapshot), store)
            session = self.open(self.settle(prepared, snapshot.state), lease, snapshot.state)
            admit(session)
            recovered = await repair(store, session.log, snapshot)
            cut = {run.run_id for run in snapshot.unfinished_runs}
            requests = parkable(lease.session, snapshot.requests)
            begun = await promised_runs_begun(store, lease.session, requests)
            session.approvals.restore(lease.session, requests, cut, begun)
        except StoreError as error:
            raise storage_error(error, lease.session) from error
        return session, recovered

    def open(self, prepared: Prepared, lease: Lease, state: dict[str, bytes], *, one_off: bool = False) -> OpenSession:
        """The session, with an event log that writes under the lease."""
        record, store = prepared.record, prepared.store
        log = EventLog(store, lease, record.epoch, self._outlet)
        return OpenSession(
            record,
            prepared.workspace,
            prepared.plan,
            store,
            log,
            prepared.transcript,
            state,
            one_off=one_off,
            remembered=self._memory.written if self._memory.keeps(store) else None,
            supplied=prepared.supplied,
            always_rules=self._always_rules,
        )

    async def take_up(self, session: OpenSession) -> None:
        """Give an open session what its folder's configuration says by now, unless a run has it.

        Raises:
            SidecarError: its agent is no longer configured, or a provider is refused.
        """
        record = session.record
        workspace = await self._workspaces.of(record.cwd)
        if workspace is session.workspace or session.slot.holder is not None:
            return
        plan = await self._plan_of(session, workspace, record, session.supplied)
        settled = settle(plan, session.working_session(), record.settled)
        async with session.changing:  # a change under way would put back the record that it has begun with
            if session.slot.holder is None:
                session.workspace, session.plan = workspace, plan
                session.record = session.record.model_copy(update={"settled": settled})

    async def supply(
        self, session: OpenSession, supplied: Supplied, providers: tuple[ProviderEntry, ...] | None
    ) -> tuple[AgentPlan, SessionRecord]:
        """What an open session is with other tools and providers of the host's. Nothing of it is changed.

        Args:
            session: The session.
            supplied: All that the host carries out itself.
            providers: The session's other providers; `None`: those that it has.

        Returns:
            Its agent, made ready with them, and its record.

        Raises:
            SidecarError: a tool or a provider is refused.
        """
        record = supplied.recorded(session.record)
        if providers is not None:
            record = record.model_copy(update={"context_providers": providers})
        plan = await self._plan_of(session, session.workspace, record, supplied)
        settled = settle(plan, session.working_session(), record.settled)
        return plan, record.model_copy(update={"settled": settled})

    async def _plan_of(
        self, session: OpenSession, workspace: Workspace, record: SessionRecord, supplied: Supplied
    ) -> AgentPlan:
        agent = workspace.catalog.resolve(record.agent_wanted)
        return await self._plan(workspace, agent, record, session.transcript, supplied)

    async def _plan(
        self,
        workspace: Workspace,
        agent: ResolvedAgent,
        record: SessionRecord,
        transcript: Transcript,
        supplied: Supplied,
    ) -> AgentPlan:
        providers = (*record.context_providers, *supplied.providers)
        return make_plan(
            agent,
            SessionSettings(record.instructions, providers, supplied.tools),
            Surroundings(cwd=record.cwd, history=transcript, memory=await self._memory.ready(), editor=self._editor),
            limits=workspace.limits,
            parts=await look_up(workspace, agent, record.context_providers),
        )


async def read_snapshot(store: SessionStore, session_id: str) -> Snapshot:
    """What one store holds of a session.

    Raises:
        SidecarError: it is not there, or cannot be read.
    """
    try:
        return await store.load(session_id)
    except StoreError as error:
        raise storage_error(error, session_id) from error
