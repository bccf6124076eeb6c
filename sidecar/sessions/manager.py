"""Which sessions are open here: finds, opens, closes and deletes them. Runs nothing; `opening` is how one is made."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from protocol.agents import AgentSpec, ProviderEntry
from protocol.sessions import CreateSessionParams, Recovered, WireWarning
from protocol.tools import HostTool
from providers.api.editor import Editor
from sidecar.agents.workspaces import Workspaces
from sidecar.errors import IdempotencyConflict, SessionClosed, SessionExists, SessionNotFound, SidecarError
from sidecar.models.registry import Models
from sidecar.stores.base import Lease, Missing, SessionStore, Snapshot, StoreError
from sidecar.telemetry import LOGGER

from .always_rules import AlwaysRules
from .envelopes import put_message
from .event_log import is_lost
from .memory_access import MemoryAccess
from .modes import MODE, with_mode
from .open_session import OpenSession, initial_state
from .opening import Opener, read_snapshot
from .outlet import Outlet
from .record import copied_record, new_record, read_record
from .storage_errors import storage_error
from .store_access import StoreAccess
from .supplied import Supplied, missing, told_apart
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
        memory: MemoryAccess,
        editor: Editor | None = None,
        *,
        cache_bytes: int,
    ) -> None:
        self.stores = stores
        self.memory = memory
        self.workspaces = workspaces
        self.outlet = outlet
        self.default_cwd: str | None = None
        """Where a session works that names no folder."""
        self._open: dict[str, OpenSession] = {}
        self._borrowed: set[str] = set()
        self.always_rules = AlwaysRules()
        """Approvals that outlast their sessions."""
        self._opener = Opener(workspaces, outlet, memory, self.always_rules, editor, cache_bytes=cache_bytes)

    @property
    def open_sessions(self) -> list[OpenSession]:
        """Those that are open here for the client: no one-off ones, none that is only borrowed or being let go of."""
        return [
            session
            for session_id, session in self._open.items()
            if not session.one_off and session_id not in self._borrowed and not session.slot.is_closed
        ]

    @property
    def models_in_use(self) -> list[Models]:
        """The endpoints of every session that is open here, one-off ones included."""
        return [session.workspace.models for session in self._open.values()]

    def find_open(self, session_id: str) -> OpenSession | None:
        """The session, if it is open here."""
        return self._open.get(session_id)

    def tell_progress(self, request_id: str, text: str) -> None:
        """The host tells how something gets on that it was asked for; of what is not open, nobody hears."""
        any(session.requests.tell(request_id, text) for session in self._open.values())

    async def get_open(self, session_id: str) -> OpenSession:
        """The session, open here.

        Raises:
            SessionClosed: it is stored, but not open here, or about to be closed.
            SessionNotFound: there is no such session.
        """
        session = self._open.get(session_id)
        if session is not None and not session.lost and not session.slot.is_closed:
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
        return await read_snapshot(store, session_id)

    async def create(self, params: CreateSessionParams, payload_hash: str) -> Opened:
        """Make a session and open it; the same id and payload again give the same session.

        Raises:
            SidecarError: the agent, a provider or the state is refused, or nothing could be stored.
        """
        workspace = await self.workspaces.of(params.cwd or self.default_cwd)
        agent = workspace.catalog.resolve(params.agent)
        stored, own = told_apart(params.context_providers or ())
        supplied = Supplied(params.tools or (), own)
        record = supplied.recorded(new_record(params, agent.name, self.default_cwd, stored))
        store = self.stores.ephemeral if params.ephemeral else await self.stores.durable()
        if params.session_id is not None:
            await self._refuse_namesake(params.session_id, store)
        prepared = await self._opener.prepare(record, workspace, agent, store, supplied)
        given, refused = params.state or {}, None
        if params.mode is not None:
            try:
                given = with_mode(prepared.plan, given, params.mode, MODE)
            except SidecarError as error:
                if params.session_id is None or not await _is_there(store, params.session_id):
                    raise
                refused = error  # a retry needs no mode: it gives the session as that is by now
        state = initial_state(given, prepared.plan)
        prepared = self._opener.settle(prepared, state)
        lease = await self._opener.create(prepared, state, payload_hash)
        if params.session_id is not None:
            snapshot = await read_snapshot(store, record.session_id)
            if read_record(snapshot).epoch != record.epoch:
                return await self._retried(store, lease, snapshot, supplied)
        if refused is not None:  # it was there a moment ago
            await store.delete(lease)
            raise refused
        session = self._admit(self._opener.open(prepared, lease, state))
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
        prepared = await self._opener.prepare_recorded(record, store)
        state = initial_state(contents.state, prepared.plan)
        prepared = self._opener.settle(prepared, state, contents.record.settled if parent is not None else None)
        puts = [put_message(message, message.run_id) for message in contents.messages]
        try:
            if session_id is not None:
                await self._refuse_namesake(session_id, store)
            lease = await self._opener.create(prepared, state, None, puts)
        except IdempotencyConflict:
            raise SessionExists(record.session_id) from None
        return self._admit(self._opener.open(prepared, lease, state))

    @asynccontextmanager
    async def borrowed(self, session_id: str) -> AsyncGenerator[OpenSession, None]:
        """A session, open here for as long as it takes: one that was not open is closed again.

        One that cannot be closed stays open, which is no fault of what was done with it.

        Raises:
            SidecarError: as `resume`.
        """
        session = self._open.get(session_id)
        if session is not None and not session.lost:
            yield session
            return
        self._borrowed.add(session_id)
        try:
            opened = await self.resume(session_id)
            try:
                yield opened.session
            finally:
                await self._give_up_if_possible(opened.session)
        finally:
            self._borrowed.discard(session_id)

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
            await self._forget(session_id)
            return False
        except StoreError as error:
            raise storage_error(error, session_id) from error
        await self._forget(session_id)
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
        return self._admit(await self._opener.one_off(agent, self.default_cwd, self.stores.ephemeral))

    async def resume(
        self,
        session_id: str,
        tools: tuple[HostTool, ...] | None = None,
        providers: tuple[ProviderEntry, ...] | None = None,
    ) -> Opened:
        """Open a stored session here, repairing what a dead process left.

        One that is open here already stays open, and takes up a configuration that is new, unless a run has it.

        Args:
            session_id: Which.
            tools: The host's; `None`: those that it has supplied in this process.
            providers: Entries of the session's; those of type `host` replace the host's, others, where there are any,
                replace the others.

        Raises:
            SidecarError: it is not there, another process owns it, its agent is no longer configured, or something
                that the host supplies is refused.
        """
        session = self._open.get(session_id)
        if session is not None:
            if not session.lost:
                await self._opener.take_up(session)
                return await self._supplied_anew(session, tools, providers)
            await self._give_up(session)
        store = await self.stores.durable()
        snapshot = await read_snapshot(store, session_id)
        record = read_record(snapshot)
        (await self.workspaces.of(record.cwd)).catalog.resolve(record.agent_wanted)
        try:
            lease = await store.acquire(session_id)
        except StoreError as error:
            raise storage_error(error, session_id) from error
        opened = await self._open_stored(store, lease)
        return replace(await self._supplied_anew(opened.session, tools, providers), recovered=opened.recovered)

    async def _supplied_anew(
        self, session: OpenSession, tools: tuple[HostTool, ...] | None, providers: tuple[ProviderEntry, ...] | None
    ) -> Opened:
        """Let a session that is open here have what its host supplies by now."""
        if tools is not None or providers is not None:
            stored, own = told_apart(providers or ())
            known = session.supplied
            has_own = providers is not None and (own or not stored)
            supplied = Supplied(known.tools if tools is None else tools, own if has_own else known.providers)
            async with session.changing:
                plan, record = await self._opener.supply(session, supplied, stored or None)
                try:
                    await asyncio.shield(session.store_now([], [record.put()]))
                except StoreError as error:
                    raise storage_error(error, session.session_id) from error
                session.plan, session.supplied, session.record = plan, supplied, record
        return Opened(session, warnings=_warnings(session))

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
        await asyncio.gather(*(session.lifetimes.leave() for session in self._open.values()))
        for session in list(self._open.values()):
            await self._give_up_if_possible(session)
        await self.memory.aclose()
        await self.stores.close()

    async def drop_one_off(self, session_id: str) -> None:
        """Forget a one-off run's session."""
        session = self._open.get(session_id)
        if session is not None:
            await self._forget(session_id)
            await session.store.delete(session.log.lease)

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

    async def _retried(self, store: SessionStore, lease: Lease, snapshot: Snapshot, supplied: Supplied) -> Opened:
        session = self._open.get(snapshot.session)
        if session is None or session.lost:
            session = (await self._open_stored(store, lease)).session
        return await self._supplied_anew(session, supplied.tools or None, supplied.providers or None)

    async def _open_stored(self, store: SessionStore, lease: Lease) -> Opened:
        try:
            session, recovered = await self._opener.stored(store, lease, self._admit)
        except BaseException:
            self._open.pop(lease.session, None)
            with suppress(StoreError):  # it is free at the end of this process at the latest
                await store.release(lease)
            raise
        return Opened(session, recovered, _warnings(session))

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
                await self._forget(session.session_id)
            raise storage_error(error, session.session_id) from error
        await self._forget(session.session_id)

    async def _give_up_if_possible(self, session: OpenSession) -> None:
        try:
            await self._give_up(session)
        except SidecarError as error:
            LOGGER.warning("session %s: %s", session.session_id, error.message)

    async def _forget(self, session_id: str) -> None:
        """It is not open here any more; who waits for its events looks elsewhere."""
        session = self._open.pop(session_id, None)
        if session is not None:
            session.slot.is_closed = True
            session.log.wake()
            await session.lifetimes.leave()

    def _admit(self, session: OpenSession) -> OpenSession:
        self._open[session.session_id] = session
        return session


async def _is_there(store: SessionStore, session_id: str) -> bool:
    try:
        await read_snapshot(store, session_id)
    except SessionNotFound:
        return False
    return True


def _warnings(session: OpenSession) -> list[WireWarning]:
    return [*session.workspace.warnings, *missing(session.record, session.supplied)]
