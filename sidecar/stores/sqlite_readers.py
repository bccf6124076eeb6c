"""A few threads that read, each with a connection of its own and one consistent view a call. They write nothing."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from .base import StoreError, Unavailable
from .sqlite_errors import translate_read
from .sqlite_file import Database

T = TypeVar("T")

_THREADS: Final = 3


class Readers:
    """A pool of reading connections, opened when they are first needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[sqlite3.Connection] = []
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(_THREADS, thread_name_prefix="store-reader")

    async def read(self, read: Callable[[sqlite3.Connection], T], session: str = "") -> T:
        """Run a function of a connection inside one read transaction. `session` is named if what it reads is damaged.

        Raises:
            StoreError: what the function raised, or the kind that stands for it.
        """
        if self._pool is None:
            raise Unavailable("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read, session)

    async def close(self) -> None:
        """Finish what is being read and close the connections. Harmless when repeated."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _read(self, read: Callable[[sqlite3.Connection], T], session: str) -> T:
        connection = None
        try:
            connection = self._take()
            connection.execute("BEGIN")
            result = read(connection)
        except StoreError:
            self._give_back(connection)
            raise
        except Exception as error:
            if connection is not None:  # it may be what is broken
                connection.close()
            raise translate_read(error, session) from error
        self._give_back(connection)
        return result

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._database.connect_reader()

    def _give_back(self, connection: sqlite3.Connection | None) -> None:
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            self._idle.append(connection)
