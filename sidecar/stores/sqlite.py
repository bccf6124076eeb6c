"""The store in one SQLite file, which several processes may share. The file, the threads and the SQL are next door."""

import asyncio
import contextlib
import functools
from dataclasses import dataclass
from pathlib import Path

from . import ownership, sqlite_lists, sqlite_reads, sqlite_writes
from .base import (
    ANY_SIZE,
    Lease,
    Owner,
    Page,
    RunRecord,
    SchemaInfo,
    SessionQuery,
    SessionRow,
    Snapshot,
    StoredEvent,
    StoredMessage,
    StoreError,
    Unavailable,
    Unit,
)
from .paging import decode_cursor
from .rules import MAX_UNIT_BYTES, check, check_first
from .sqlite_file import Database, Durability
from .sqlite_memories import SqliteMemories
from .sqlite_readers import Readers
from .sqlite_writer import Writer


@dataclass(frozen=True, slots=True)
class _Opened:
    owner: Owner
    lock: ownership.OwnerLock
    writer: Writer
    readers: Readers


class SqliteStore:
    """Implements `SessionStore`; each method is described there."""

    durable = True

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "full",
        busy_seconds: float = 5.0,
        max_unit_bytes: int = MAX_UNIT_BYTES,
    ) -> None:
        """Remember where the store is; `open` touches it.

        Args:
            path: the database file, on a local disk. Missing folders are created.
            durability: what an acknowledged unit survives.
            busy_seconds: how long to wait for another process's write before giving `Unavailable(busy=True)`.
            max_unit_bytes: larger units are `Refused`.
        """
        self._database = Database(path, durability, busy_seconds)
        self._max_unit_bytes = max_unit_bytes
        self._opened: _Opened | None = None
        self.memories = SqliteMemories(self._database)

    async def open(self, owner: Owner, *, migrate: bool = True) -> SchemaInfo:
        """See `SessionStore.open`."""
        if self._opened is not None:
            raise Unavailable("the store is open already")
        writer = Writer(self._database)
        info = await writer.start(allow_migration=migrate)
        joining = asyncio.create_task(asyncio.to_thread(ownership.join, self._database.owners, owner.id))
        try:
            lock = await asyncio.shield(joining)
        except BaseException:
            joining.add_done_callback(_give_back)  # a cancelled caller's thread goes on, and takes it for nobody
            await writer.stop()
            raise
        readers = Readers(self._database)
        self._opened = _Opened(owner, lock, writer, readers)
        self.memories.attach(writer, readers)
        return info

    async def close(self) -> None:
        """See `SessionStore.close`. Harmless when repeated."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        self.memories.detach()
        try:
            # Where nothing can be written, it is the lock that frees the sessions.
            with contextlib.suppress(StoreError):
                await opened.writer.submit(functools.partial(sqlite_writes.release_all, owner=opened.owner.id))
        finally:
            await opened.readers.close()
            await opened.writer.stop()
            await asyncio.to_thread(opened.lock.release)

    async def create(self, session: str, first: Unit, *, key: str | None = None) -> Lease:
        """See `SessionStore.create`."""
        opened = self._require()
        check(first, self._max_unit_bytes)
        check_first(session, first)
        owners = self._database.owners
        return await opened.writer.submit(
            lambda connection: sqlite_writes.create(connection, session, first, key, opened.owner, owners)
        )

    async def acquire(self, session: str) -> Lease:
        """See `SessionStore.acquire`."""
        opened = self._require()
        owners = self._database.owners
        return await opened.writer.submit(
            lambda connection: sqlite_writes.acquire(connection, session, opened.owner, owners)
        )

    async def release(self, lease: Lease) -> None:
        """See `SessionStore.release`."""
        await self._require().writer.submit(lambda connection: sqlite_writes.release(connection, lease))

    async def commit(self, unit: Unit) -> int:
        """See `SessionStore.commit`."""
        opened = self._require()
        check(unit, self._max_unit_bytes)
        return await opened.writer.submit(lambda connection: sqlite_writes.commit(connection, unit, opened.owner.id))

    async def delete(self, lease: Lease) -> None:
        """See `SessionStore.delete`."""
        await self._require().writer.submit(lambda connection: sqlite_writes.delete(connection, lease))

    async def load(self, session: str) -> Snapshot:
        """See `SessionStore.load`."""
        opened = self._require()
        return await opened.readers.read(
            lambda connection: sqlite_reads.snapshot(connection, session, self._liveness(opened.owner)), session
        )

    async def messages(
        self,
        session: str,
        *,
        after: int | None = None,
        limit: int = 100,
        max_bytes: int = 4 << 20,
        newest_first: bool = False,
        run_id: str | None = None,
        hidden: bool = False,
    ) -> Page[StoredMessage]:
        """See `SessionStore.messages`."""
        read = functools.partial(
            sqlite_reads.messages,
            session=session,
            after=after,
            limit=limit,
            max_bytes=max_bytes,
            newest_first=newest_first,
            run_id=run_id,
            hidden=hidden,
        )
        return await self._require().readers.read(read, session)

    async def events(self, session: str, after: int, limit: int, max_bytes: int) -> Page[StoredEvent]:
        """See `SessionStore.events`."""
        return await self._require().readers.read(
            lambda connection: sqlite_reads.events(connection, session, after, limit, max_bytes), session
        )

    async def find_run(self, session: str, run_id: str) -> RunRecord | None:
        """See `SessionStore.find_run`."""
        return await self._require().readers.read(
            lambda connection: sqlite_reads.find_run(connection, session, run_id), session
        )

    async def list(
        self, query: SessionQuery, cursor: str | None, limit: int, max_bytes: int = ANY_SIZE
    ) -> Page[SessionRow]:
        """See `SessionStore.list`."""
        owner_of = self._liveness(self._require().owner)
        after = None if cursor is None else decode_cursor(cursor)
        return await self._require().readers.read(
            lambda connection: sqlite_lists.sessions(connection, query, after, limit, max_bytes, owner_of)
        )

    def _require(self) -> _Opened:
        if self._opened is None:
            raise Unavailable("the store is not open")
        return self._opened

    def _liveness(self, me: Owner) -> sqlite_reads.OwnerOf:
        """Tells whether a row's owner is alive, looking at each lock file once."""
        alive = {me.id: True}

        def owner_of(owner: str | None, pid: int, since: str) -> Owner | None:
            if owner is None:
                return None
            if owner not in alive:
                alive[owner] = ownership.is_alive(self._database.owners, owner)
            return Owner(owner, pid, since) if alive[owner] else None

        return owner_of


def _give_back(joining: "asyncio.Task[ownership.OwnerLock]") -> None:
    if not joining.cancelled() and joining.exception() is None:
        joining.result().release()
