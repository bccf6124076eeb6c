"""Creates, opens, closes and finds sessions. Runs nothing; knows no JSON-RPC."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from protocol.agents import AgentSpec
from protocol.base import JsonObject
from protocol.sessions import CreateSessionParams, Recovered, WireWarning
from providers.api.provider import Surroundings
from sidecar.agents.catalog import AgentCatalog, ResolvedAgent
from sidecar.agents.plan import AgentPlan, SessionSettings, check_state, make_plan
from sidecar.errors import IdempotencyConflict, InvalidParams, SessionClosed
from sidecar.sessions.event_log import EventLog, SendEvent
from sidecar.sessions.ids import new_id, now
from sidecar.sessions.open_session import OpenSession, state_bytes
from sidecar.sessions.record import SessionRecord, read_record
from sidecar.sessions.recovery import repair
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.store_access import StoreAccess
from sidecar.sessions.transcript import Transcript
from sidecar.stores.base import Exists, Lease, PutState, SessionStore, Snapshot, StoreError, Unit


@dataclass(frozen=True, slots=True)
class Outlet:
    """The way to the client."""

    send_event: SendEvent
    breathe: Callable[[], Awaitable[None]]
    """Waits while the client is far behind in reading."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that is open now, and what opening it took."""

    session: OpenSession
    recovered: Recovered | None = None
    warnings: Sequence[WireWarning] = ()


class SessionManager:
    """Every session that is open in this process, and the way to those that are stored."""

    def __init__(
        self,
        stores: StoreAccess,
        catalog: AgentCatalog,
        outlet: Outlet,
        *,
        cache_bytes: int,
        hook_timeout_ms: int,
        max_turns: int,
    ) -> None:
        self.stores = stores
        self.catalog = catalog
        self.outlet = outlet
        self.default_cwd: str | None = None
        """Where a session works that names no folder."""
        self._open: dict[str, OpenSession] = {}
        self._cache_bytes = cache_bytes
        self._hook_timeout_ms = hook_timeout_ms
        self._max_turns = max_turns

    @property
    def open_sessions(self) -> list[OpenSession]:
        """Those that are open here, one-off ones left out."""
        return [session for session in self._open.values() if not session.one_off]

    def find_open(self, session_id: str) -> OpenSession | None:
        """The session, if it is open here."""
        return self._open.get(session_id)

    async def get_open(self, session_id: str) -> OpenSession:
        """The session, open here.

        Raises:
            SessionClosed: it is stored, but not open here.
            SessionNotFound: there is no such session.
        """
        session = self._open.get(session_id)
        if session is not None and not session.lost:
            return session
        await self.snapshot(session_id)
        raise SessionClosed(session_id)

    async def snapshot(self, session_id: str) -> Snapshot:
        """What is stored of a session.

        Raises:
            SidecarError: it is not there, or cannot be read.
        """
        open_here = self._open.get(session_id)
        store = open_here.store if open_here is not None else await self.stores.durable()
        try:
            return await store.load(session_id)
        except StoreError as error:
            raise storage_error(error, session_id) from error

    async def create(self, params: CreateSessionParams, payload_hash: str) -> Opened:
        """Make a session and open it; the same id and payload again give the same session.

        Raises:
            SidecarError: the agent, a provider or the state is refused, or nothing could be stored.
        """
        agent = self.catalog.resolve(params.agent)
        record = self._new_record(params, agent)
        transcript_store = self.stores.ephemeral if params.ephemeral else await self.stores.durable()
        transcript = Transcript(transcript_store, record.session_id, self._cache_bytes)
        plan = self._plan(agent, record, transcript)
        state = _initial_state(params.state or {}, plan)
        lease = await self._create(transcript_store, record, state, payload_hash)
        if params.session_id is not None:
            snapshot = await self.snapshot_in(transcript_store, record.session_id)
            if read_record(snapshot).epoch != record.epoch:
                return await self._retried(transcript_store, lease, snapshot)
        return Opened(self._admit(record, plan, transcript_store, lease, transcript, state))

    async def create_one_off(self, agent: str | AgentSpec | None) -> OpenSession:
        """A throw-away session for one run: kept in memory, in no list, with no history."""
        resolved = self.catalog.resolve(agent)
        record = self._new_record(CreateSessionParams(agent=agent), resolved)
        store = self.stores.ephemeral
        transcript = Transcript(store, record.session_id, self._cache_bytes)
        plan = make_plan(
            resolved,
            SessionSettings(),
            Surroundings(cwd=record.cwd),
            hook_timeout_ms=self._hook_timeout_ms,
            max_turns=self._max_turns,
            with_history=False,
        )
        lease = await self._create(store, record, {}, None)
        return self._admit(record, plan, store, lease, transcript, {}, one_off=True)

    async def resume(self, session_id: str) -> Opened:
        """Open a stored session here, repairing what a dead process left. One that is open here stays as it is.

        Raises:
            SidecarError: it is not there, another process owns it, or its agent is no longer configured.
        """
        session = self._open.get(session_id)
        if session is not None:
            if not session.lost:
                return Opened(session)
            await self._give_up(session)
        store = await self.stores.durable()
        snapshot = await self.snapshot_in(store, session_id)
        self.catalog.resolve(_agent_of(read_record(snapshot)))
        try:
            lease = await store.acquire(session_id)
        except StoreError as error:
            raise storage_error(error, session_id) from error
        return await self._open_stored(store, lease)

    async def close(self, session_id: str) -> None:
        """Let go of a session; its data stays. One that is not open here is closed already.

        Raises:
            SessionNotFound: there is no such session.
        """
        session = self._open.get(session_id)
        if session is None:
            await self.snapshot(session_id)
            return
        await self._give_up(session)

    async def close_all(self) -> None:
        """Let go of every session, and of the stores."""
        for session in list(self._open.values()):
            await self._give_up(session)
        await self.stores.close()

    async def drop_one_off(self, session_id: str) -> None:
        """Forget a one-off run's session."""
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.store.delete(session.log.lease)

    async def snapshot_in(self, store: SessionStore, session_id: str) -> Snapshot:
        """What one store holds of a session. Raises as `snapshot` does."""
        try:
            return await store.load(session_id)
        except StoreError as error:
            raise storage_error(error, session_id) from error

    async def _retried(self, store: SessionStore, lease: Lease, snapshot: Snapshot) -> Opened:
        session = self._open.get(snapshot.session)
        if session is not None and not session.lost:
            return Opened(session)
        return await self._open_stored(store, lease)

    async def _open_stored(self, store: SessionStore, lease: Lease) -> Opened:
        try:
            snapshot = await store.load(lease.session)
            record = read_record(snapshot)
            transcript = Transcript(store, record.session_id, self._cache_bytes)
            plan = self._plan(self.catalog.resolve(_agent_of(record)), record, transcript)
            session = self._admit(record, plan, store, lease, transcript, snapshot.state)
            recovered = await repair(session.log, snapshot)
        except StoreError as error:
            await self._release(store, lease)
            raise storage_error(error, lease.session) from error
        except BaseException:
            await self._release(store, lease)
            raise
        return Opened(session, recovered)

    async def _release(self, store: SessionStore, lease: Lease) -> None:
        self._open.pop(lease.session, None)
        await store.release(lease)

    async def _give_up(self, session: OpenSession) -> None:
        self._open.pop(session.session_id, None)
        try:
            if not session.lost:
                await session.log.flush()
        except StoreError as error:
            raise storage_error(error, session.session_id) from error
        finally:
            if session.store is self.stores.ephemeral:
                await session.store.delete(session.log.lease)
            else:
                await session.store.release(session.log.lease)

    async def _create(
        self, store: SessionStore, record: SessionRecord, state: dict[str, bytes], payload_hash: str | None
    ) -> Lease:
        puts = (record.put(), *(PutState(key, value) for key, value in state.items()))
        first = Unit(id=new_id("unit"), session=record.session_id, epoch=1, expect_seq=0, puts=puts)
        try:
            return await store.create(record.session_id, first, key=payload_hash)
        except Exists:
            raise IdempotencyConflict(f"session id {record.session_id!r}", session_id=record.session_id) from None
        except StoreError as error:
            raise storage_error(error, record.session_id) from error

    def _new_record(self, params: CreateSessionParams, agent: ResolvedAgent) -> SessionRecord:
        created = now()
        return SessionRecord(
            session_id=params.session_id or new_id("ses"),
            agent=agent.name,
            agent_spec=params.agent if isinstance(params.agent, AgentSpec) else None,
            model=params.model,
            instructions=params.instructions,
            context_providers=params.context_providers or (),
            title=params.title,
            cwd=params.cwd or self.default_cwd,
            created_at=created,
            updated_at=created,
            epoch=new_id("ep"),
            metadata=params.metadata,
        )

    def _plan(self, agent: ResolvedAgent, record: SessionRecord, transcript: Transcript) -> AgentPlan:
        return make_plan(
            agent,
            SessionSettings(
                model=record.model, instructions=record.instructions, context_providers=record.context_providers
            ),
            Surroundings(cwd=record.cwd, history=transcript),
            hook_timeout_ms=self._hook_timeout_ms,
            max_turns=self._max_turns,
        )

    def _admit(
        self,
        record: SessionRecord,
        plan: AgentPlan,
        store: SessionStore,
        lease: Lease,
        transcript: Transcript,
        state: dict[str, bytes],
        *,
        one_off: bool = False,
    ) -> OpenSession:
        log = EventLog(store, lease, record.epoch, self.outlet.send_event, self.outlet.breathe)
        session = OpenSession(record, plan, store, log, transcript, state, one_off=one_off)
        self._open[record.session_id] = session
        return session


def _agent_of(record: SessionRecord) -> str | AgentSpec:
    return record.agent_spec if record.agent_spec is not None else record.agent


def _initial_state(state: JsonObject, plan: AgentPlan) -> dict[str, bytes]:
    check_state(state, plan)
    try:
        return {key: state_bytes(key, value) for key, value in state.items()}
    except ValueError as error:
        raise InvalidParams(str(error)) from None
