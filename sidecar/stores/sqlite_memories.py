"""Long-term memory in the SQLite store's file: which thread does what. The SQL is next door."""

import asyncio
import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from typing import Final

from providers.api.memory import Scope, Vector

from . import sqlite_memory_reads, sqlite_memory_writes, sqlite_search
from .base import Page, Unavailable
from .memory_rows import CollectionInfo, Found, MemoryFilter, MemoryRow, Pending, QueryVector
from .memory_rules import check_filter, check_scope
from .nearest import Matrices
from .paging import decode_position
from .sqlite_file import Database
from .sqlite_readers import Readers
from .sqlite_writer import Writer

_MOST_MERGES: Final = 10_000
"""A bound for what never comes near it."""


class SqliteMemories:
    """Implements `Memories`; each method is described there."""

    def __init__(self, database: Database) -> None:
        """Belong to the store of a file; `attach` and `detach` follow its opening and closing."""
        self._database = database
        self._matrices = Matrices()
        self._threads: tuple[Writer, Readers] | None = None

    def attach(self, writer: Writer, readers: Readers) -> None:
        """Use the threads of a store that was opened."""
        self._threads = (writer, readers)

    def detach(self) -> None:
        """Do nothing more: the store is closing."""
        self._threads = None
        self._matrices.clear()

    async def find(self, where: MemoryFilter, text: str, vector: QueryVector | None, limit: int) -> Found:
        """See `Memories.find`."""
        check_filter(where)
        return await self._readers.read(
            lambda connection: sqlite_search.find(connection, where, text, vector, limit, self._matrices)
        )

    async def newest(self, where: MemoryFilter, limit: int) -> Sequence[MemoryRow]:
        """See `Memories.newest`."""
        check_filter(where)
        return await self._readers.read(lambda connection: sqlite_memory_reads.newest(connection, where, limit))

    async def page(self, where: MemoryFilter, cursor: str | None, limit: int) -> Page[MemoryRow]:
        """See `Memories.page`."""
        check_filter(where)
        before = None if cursor is None else decode_position(cursor)
        return await self._readers.read(lambda connection: sqlite_memory_reads.page(connection, where, before, limit))

    async def count(self, where: MemoryFilter) -> int:
        """See `Memories.count`."""
        check_filter(where)
        return await self._readers.read(lambda connection: sqlite_memory_reads.count(connection, where))

    async def forget(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """See `Memories.forget`."""
        check_scope(scope)
        writer, where = self._writer, MemoryFilter(collection, scope)
        last = await writer.submit(sqlite_memory_writes.last_id)
        erase = functools.partial(sqlite_memory_writes.forget, where=where, memory_ids=memory_ids, last=last)
        erased = 0
        while step := await writer.submit(erase):
            erased += step
        if erased:
            await self._scrub(writer)
        return erased

    async def collections(self) -> Sequence[CollectionInfo]:
        """See `Memories.collections`."""
        return await self._readers.read(sqlite_memory_reads.collections)

    async def use_embedder(self, collection: str, embedder: str, dimension: int) -> None:
        """See `Memories.use_embedder`."""
        await self._writer.submit(
            lambda connection: sqlite_memory_writes.use_embedder(connection, collection, embedder, dimension)
        )

    async def pending(self, collection: str, after: int, limit: int) -> Sequence[Pending]:
        """See `Memories.pending`."""
        return await self._readers.read(
            lambda connection: sqlite_memory_reads.pending(connection, collection, after, limit)
        )

    async def fill(self, collection: str, embedder: str, vectors: Sequence[tuple[int, Vector]]) -> int:
        """See `Memories.fill`."""
        return await self._writer.submit(
            lambda connection: sqlite_memory_writes.fill(connection, collection, embedder, vectors)
        )

    async def drop_vectors(self, collection: str) -> None:
        """See `Memories.drop_vectors`."""
        await self._writer.submit(lambda connection: sqlite_memory_writes.drop_vectors(connection, collection))

    async def _scrub(self, writer: Writer) -> None:
        """Take what was erased out of the full-text index and out of the log."""
        begin = True
        for _ in range(_MOST_MERGES):
            if not await writer.submit(functools.partial(sqlite_memory_writes.merge_words, begin=begin)):
                break
            begin = False
        self._matrices.clear()
        await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> None:
        # Where somebody reads on and on, the log is emptied later: by the next erasure, or by the last who closes.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._database.connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @property
    def _writer(self) -> Writer:
        return self._attached[0]

    @property
    def _readers(self) -> Readers:
        return self._attached[1]

    @property
    def _attached(self) -> tuple[Writer, Readers]:
        if self._threads is None:
            raise Unavailable("the store is not open")
        return self._threads
