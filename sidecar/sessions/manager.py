"""Creates, opens, closes and finds sessions. Runs nothing; knows no JSON-RPC."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from protocol.agents import AgentSpec
from protocol.sessions import CreateSessionParams, Recovered, WireWarning
from providers.api.provider import Surroundings
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.plan import AgentPlan, SessionSettings, make_plan
from sidecar.agents.provider_types import provider_types
from sidecar.agents.workspaces import Workspace, Workspaces
from sidecar.errors import IdempotencyConflict, SessionClosed, SessionExists, SidecarError
from sidecar.models.registry import Models
from sidecar.stores.base import Exists, Lease, Missing, PutMessage, PutState, SessionStore, Snapshot, StoreError, Unit
from sidecar.telemetry import LOGGER

from .envelopes import put_message
from .event_log import EventLog, is_lost
from .ids import new_id
from .open_session import OpenSession, initial_state
from .outlet import Outlet
from .record import SessionRecord, copied_record, new_record, read_record
from .recovery import repair
from .storage_errors import storage_error
from .store_access import StoreAccess
from .transcript import Transcript
from .transfer import Contents


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
        workspaces: Workspaces,
        outlet: Outlet,
        *,
        cache_bytes: int,
    ) -> None:
        self.stores = stores
        self.workspaces = workspaces
        self.outlet = outlet
        self.default_cwd: str | None = None
        """Where a session works that names no folder."""
        self._open: dict[str, OpenSession] = {}
        self._cache_bytes = cache_bytes

    @property
    def open_sessions(self) -> list[OpenSession]:
        """Those that are open here, one-off ones left out."""
        return [session for session in self._open.values() if not session.one_off]

    @property
    def models_in_use(self) -> list[Models]:
        """The endpoints of every session that is open here, one-off ones included."""
        return [session.workspace.models for session in self._open.values()]

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
        workspace = await self.workspaces.of(params.cwd or self.default_cwd)
        agent = workspace.catalog.resolve(params.agent)
        record = new_record(params, agent.name, self.default_cwd)
        transcript_store = self.stores.ephemeral if params.ephemeral else await self.stores.durable()
        if params.session_id is not None:
            await self._refuse_namesake(params.session_id, transcript_store)
        transcript = Transcript(transcript_store, record.session_id, self._cache_bytes)
        plan = await self._plan(workspace, agent, record, transcript)
        state = initial_state(params.state or {}, plan)
        lease = await self._create(transcript_store, record, state, payload_hash)
        if params.session_id is not None:
            snapshot = await self.snapshot_in(transcript_store, record.session_id)
            if read_record(snapshot).epoch != record.epoch:
                return await self._retried(transcript_store, lease, snapshot)
        session = self._admit(record, workspace, plan, transcript_store, lease, transcript, state)
        return Opened(session, warnings=workspace.warnings)

    async def create_from(
        self, contents: Contents, session_id: str | None, *, parent: str | None = None, ephemeral: bool = False
    ) -> OpenSession:
        """A session that begins with what another one held; its events begin anew.

        Raises:
            SessionExists: the id is taken.
            SidecarError: its agent is not configured, or nothing could be stored.
        """
        record = copied_record(contents.record, session_id, parent)
        store = self.stores.ephemeral if ephemeral else await self.stores.durable()
        transcript = Transcript(store, record.session_id, self._cache_bytes)
        workspace = await self.workspaces.of(record.cwd)
        plan = await self._plan(workspace, workspace.catalog.resolve(record.agent_wanted), record, transcript)
        state = initial_state(contents.state, plan)
        puts = [put_message(message, message.run_id) for message in contents.messages]
        try:
            if session_id is not None:
                await self._refuse_namesake(session_id, store)
            lease = await self._create(store, record, state, None, puts)
        except IdempotencyConflict:
            raise SessionExists(record.session_id) from None
        return self._admit(record, workspace, plan, store, lease, transcript, state)

    @asynccontextmanager
    async def borrowed(self, session_id: str) -> AsyncGenerator[OpenSession, None]:
        """A session, open here for as long as it takes: one that was not open is closed again.

        Raises:
            SidecarError: as `resume`.
        """
        session = self._open.get(session_id)
        if session is not None and not session.lost:
            yield session
            return
        opened = await self.resume(session_id)
        try:
            yield opened.session
        finally:
            await self._give_up(opened.session)

    async def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it; whether it was there.

        Raises:
            SessionLocked: another process has it open.
        """
        session = self._open.get(session_id)
        if session is not None and session.lost:
            session = None
        store = session.store if session is not None else await self.stores.durable()
        try:
            lease = session.log.lease if session is not None else await store.acquire(session_id)
            await store.delete(lease)
        except Missing:
            self._forget(session_id)
            return False
        except StoreError as error:
            raise storage_error(error, session_id) from error
        self._forget(session_id)
        return True

    @asynccontextmanager
    async def steady(self, session_id: str) -> AsyncGenerator[SessionStore, None]:
        """The store to read a session from. One that is open here does not change meanwhile.

        Raises:
            StorageFailed: the store cannot be opened.
        """
        session = self._open.get(session_id)
        if session is None:
            yield await self.stores.durable()
            return
        async with session.log.lock:
            yield session.store

    async def create_one_off(self, agent: str | AgentSpec | None) -> OpenSession:
        """A throw-away session for one run: kept in memory, in no list, with no history."""
        workspace = await self.workspaces.of(self.default_cwd)
        resolved = workspace.catalog.resolve(agent)
        record = new_record(CreateSessionParams(agent=agent), resolved.name, self.default_cwd)
        store = self.stores.ephemeral
        transcript = Transcript(store, record.session_id, self._cache_bytes)
        plan = make_plan(
            resolved,
            SessionSettings(),
            Surroundings(cwd=record.cwd),
            limits=workspace.limits,
            with_history=False,
            plugins=await provider_types(resolved, (), workspace.plugins, workspace.file_of(resolved)),
        )
        lease = await self._create(store, record, {}, None)
        return self._admit(record, workspace, plan, store, lease, transcript, {}, one_off=True)

    async def resume(self, session_id: str) -> Opened:
        """Open a stored session here, repairing what a dead process left.

        One that is open here already stays open, and takes up a configuration that is new, unless a run has it.

        Raises:
            SidecarError: it is not there, another process owns it, or its agent is no longer configured.
        """
        session = self._open.get(session_id)
        if session is not None:
            if not session.lost:
                await self._take_up(session)
                return Opened(session, warnings=session.workspace.warnings)
            await self._give_up(session)
        store = await self.stores.durable()
        snapshot = await self.snapshot_in(store, session_id)
        record = read_record(snapshot)
        (await self.workspaces.of(record.cwd)).catalog.resolve(record.agent_wanted)
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
        """Let go of every session, and of the stores. What cannot be stored now is logged, and left to crash repair."""
        for session in list(self._open.values()):
            try:
                await self._give_up(session)
            except SidecarError as error:
                LOGGER.warning("session %s: %s", session.session_id, error.message)
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

    async def _refuse_namesake(self, session_id: str, store: SessionStore) -> None:
        """An id names one session, ephemeral or stored.

        Raises:
            IdempotencyConflict: the other store has one of this name.
        """
        open_here = self._open.get(session_id)
        taken = open_here is not None and open_here.store is not store
        if not taken and store is self.stores.ephemeral:
            taken = await self.stores.has_stored(session_id)
        if taken:
            raise IdempotencyConflict(f"session id {session_id!r}", session_id=session_id)

    async def _retried(self, store: SessionStore, lease: Lease, snapshot: Snapshot) -> Opened:
        session = self._open.get(snapshot.session)
        if session is not None and not session.lost:
            return Opened(session, warnings=session.workspace.warnings)
        return await self._open_stored(store, lease)

    async def _take_up(self, session: OpenSession) -> None:
        """Give an open session what its folder's configuration says by now."""
        record = session.record
        workspace = await self.workspaces.of(record.cwd)
        if workspace is session.workspace:
            return
        plan = await self._plan(workspace, workspace.catalog.resolve(record.agent_wanted), record, session.transcript)
        if session.slot.holder is None:
            session.workspace, session.plan = workspace, plan

    async def _open_stored(self, store: SessionStore, lease: Lease) -> Opened:
        try:
            snapshot = await store.load(lease.session)
            record = read_record(snapshot)
            transcript = Transcript(store, record.session_id, self._cache_bytes)
            workspace = await self.workspaces.of(record.cwd)
            plan = await self._plan(workspace, workspace.catalog.resolve(record.agent_wanted), record, transcript)
            session = self._admit(record, workspace, plan, store, lease, transcript, snapshot.state)
            recovered = await repair(store, session.log, snapshot)
        except StoreError as error:
            await self._release(store, lease)
            raise storage_error(error, lease.session) from error
        except BaseException:
            await self._release(store, lease)
            raise
        return Opened(session, recovered, workspace.warnings)

    async def _release(self, store: SessionStore, lease: Lease) -> None:
        self._open.pop(lease.session, None)
        with suppress(StoreError):  # it is free at the end of this process at the latest
            await store.release(lease)

    async def _give_up(self, session: OpenSession) -> None:
        """Let go of a session. One that cannot be stored now stays open, so that nothing of it is lost.

        Raises:
            SidecarError: it is still open; or it was lost to another process, and is closed here now.
        """
        try:
            if not session.lost:
                await session.log.flush()
            if session.store is self.stores.ephemeral:
                await session.store.delete(session.log.lease)
            else:
                await session.store.release(session.log.lease)
        except StoreError as error:
            if session.lost or is_lost(error):
                self._forget(session.session_id)
            raise storage_error(error, session.session_id) from error
        self._forget(session.session_id)

    def _forget(self, session_id: str) -> None:
        """It is not open here any more; who waits for its events looks elsewhere."""
        session = self._open.pop(session_id, None)
        if session is not None:
            session.log.wake()

    async def _create(
        self,
        store: SessionStore,
        record: SessionRecord,
        state: dict[str, bytes],
        payload_hash: str | None,
        messages: Sequence[PutMessage] = (),
    ) -> Lease:
        puts = (record.put(), *(PutState(key, value) for key, value in state.items()), *messages)
        first = Unit(id=new_id("unit"), session=record.session_id, epoch=1, expect_seq=0, puts=puts)
        try:
            return await store.create(record.session_id, first, key=payload_hash)
        except Exists:
            raise IdempotencyConflict(f"session id {record.session_id!r}", session_id=record.session_id) from None
        except StoreError as error:
            raise storage_error(error, record.session_id) from error

    async def _plan(
        self, workspace: Workspace, agent: ResolvedAgent, record: SessionRecord, transcript: Transcript
    ) -> AgentPlan:
        return make_plan(
            agent,
            SessionSettings(instructions=record.instructions, context_providers=record.context_providers),
            Surroundings(cwd=record.cwd, history=transcript),
            limits=workspace.limits,
            plugins=await provider_types(agent, record.context_providers, workspace.plugins, workspace.file_of(agent)),
        )

    def _admit(
        self,
        record: SessionRecord,
        workspace: Workspace,
        plan: AgentPlan,
        store: SessionStore,
        lease: Lease,
        transcript: Transcript,
        state: dict[str, bytes],
        *,
        one_off: bool = False,
    ) -> OpenSession:
        log = EventLog(store, lease, record.epoch, self.outlet)
        session = OpenSession(record, workspace, plan, store, log, transcript, state, one_off=one_off)
        self._open[record.session_id] = session
        return session
