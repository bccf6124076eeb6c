"""The one thread that writes: it groups jobs of all sessions into one transaction and one sync. It knows no tables.

A job is a function of the connection that writes one session's change. A job that fails takes nothing along: its
savepoint is rolled back and the others are committed. Nobody is answered before COMMIT has returned.
"""

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar, cast

from sidecar.crash_points import reached

from .base import SchemaInfo, StoreError, Unavailable
from .sqlite_errors import is_full, primary_code, translate, translate_commit, translate_read
from .sqlite_file import Database, forget

T = TypeVar("T")

_log = logging.getLogger(__name__)

_GROUP: Final = 256
"""The most jobs in one transaction."""


@dataclass(slots=True, eq=False)
class _Job:
    write: Callable[[sqlite3.Connection], object]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: object = None
    error: StoreError | None = None


class Writer:
    """Owns the writing connection. Made on any thread; `start` to `stop` once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._accepts = False
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None

    async def start(self, *, allow_migration: bool) -> SchemaInfo:
        """Open the database, bring its schema up to date and begin to take jobs.

        Raises:
            Foreign, Damaged, Unavailable: as the names say.
        """
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[SchemaInfo] = loop.create_future()
        self._thread = threading.Thread(
            target=self._main, args=(allow_migration, opened, loop), name="store-writer", daemon=True
        )
        self._thread.start()
        try:
            info = await opened
        except BaseException:
            await self.stop()
            raise
        self._accepts = True
        return info

    async def submit(self, write: Callable[[sqlite3.Connection], T]) -> T:
        """Run a job in the next transaction; returns its result once that is durable.

        Raises:
            StoreError: what the job raised; `Unavailable` or `Unknown` where the transaction failed.
        """
        loop = asyncio.get_running_loop()
        job = _Job(write, loop.create_future(), loop)
        with self._gate:
            if not self._accepts:
                raise Unavailable("the store is not open")
            self._jobs.put(job)
        return cast("T", await job.future)

    async def stop(self) -> None:
        """Finish the jobs that were taken, close the connection, end the thread. Harmless when repeated."""
        with self._gate:
            self._accepts = False
            self._jobs.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    # The thread.

    def _main(self, allow_migration: bool, opened: asyncio.Future[SchemaInfo], loop: asyncio.AbstractEventLoop) -> None:
        key = None
        try:
            try:
                key = self._database.prepare(create=allow_migration)
                self._connection = self._database.connect()
                info = self._database.set_up(self._connection, allow_migration=allow_migration)
                _log.debug("SQLite %s", sqlite3.sqlite_version)
            except Exception as error:
                self._disconnect()
                _deliver(loop, [(opened, None, translate_read(error, ""))])
                return
            _deliver(loop, [(opened, info, None)])
            while group := self._next_group():
                self._run(group)
                _answer(group)
        finally:
            self._disconnect()
            if key is not None:
                forget(key)

    def _next_group(self) -> list[_Job]:
        """Wait for a job and take all that came with it; nothing once the writer is to stop."""
        job = self._jobs.get()
        group: list[_Job] = []
        while job is not None:
            group.append(job)
            if len(group) == _GROUP:
                break
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
        if job is None and group:
            self._jobs.put(None)
        return group

    def _run(self, group: list[_Job]) -> None:
        """Write a group, and settle every job's result or error."""
        try:
            connection = self._begin()
        except Exception as error:  # the thread must not die with one group
            cause = error
            _fail(group, lambda: translate(cause))
            if primary_code(error) != sqlite3.SQLITE_BUSY:
                self._disconnect()
            return
        if not (_apply(connection, group) and self._commit(connection, group)):
            self._roll_back(connection)
            if len(group) > 1 and not all(job.error for job in group):
                # One job was too much, for the disk perhaps, and SQLite gave the transaction up: now each for itself.
                for job in group:
                    job.error = None
                    self._run([job])

    def _begin(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._database.connect()
            self._database.set_up(self._connection, allow_migration=False)
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _commit(self, connection: sqlite3.Connection, group: list[_Job]) -> bool:
        """Make a group durable; otherwise its jobs have the error, except where each may be tried by itself."""
        try:
            reached("store.commit.before")
            connection.execute("COMMIT")
            reached("store.commit.after")
        except sqlite3.Error as error:
            cause = error
            if not is_full(error) or len(group) == 1:
                _fail(group, lambda: translate_commit(cause))
            return False
        return True

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """End what is left of a transaction.

        The connection is kept where possible: what a failed COMMIT left in the log stays unseen and is overwritten.
        """
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _apply(connection: sqlite3.Connection, group: list[_Job]) -> bool:
    """Run each job on its own; whether the transaction still stands."""
    try:
        for job in group:
            if len(group) > 1:
                connection.execute("SAVEPOINT job")
            job.error = _attempt(connection, job)
            if job.error is not None and (len(group) == 1 or not connection.in_transaction):
                return False
            if job.error is not None:
                connection.execute("ROLLBACK TO job")
            if len(group) > 1:
                connection.execute("RELEASE job")
    except sqlite3.Error:  # of a savepoint, which a job by itself does without
        return False
    return True


def _attempt(connection: sqlite3.Connection, job: _Job) -> StoreError | None:
    try:
        job.result = job.write(connection)
    except (StoreError, sqlite3.Error) as error:
        return translate(error)
    except Exception as error:  # a job's own fault must not reach its neighbours
        _log.exception("a unit cannot be written")
        return translate(error)
    return None


def _fail(group: list[_Job], error: Callable[[], StoreError]) -> None:
    for job in group:
        job.error = job.error or error()


def _answer(group: list[_Job]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], object, StoreError | None]]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append((job.future, job.result, job.error))
    for loop, answers in by_loop.items():
        _deliver(loop, answers)


def _deliver(
    loop: asyncio.AbstractEventLoop, answers: list[tuple[asyncio.Future[Any], Any, StoreError | None]]
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_settle, answers)


def _settle(answers: list[tuple[asyncio.Future[Any], object, StoreError | None]]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
