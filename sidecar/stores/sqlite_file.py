"""The database file itself: whose it is, with which modes it comes to be, how a connection to it is set up. No tables.

A file is looked at before SQLite opens it, because opening alone may change a database that is not ours.
"""

import os
import sqlite3
import stat
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .base import Damaged, Foreign, SchemaInfo, Unavailable
from .sqlite_errors import primary_code
from .sqlite_schema import APPLICATION_ID, migrate, refuse_newer

Durability = Literal["full", "normal"]
"""`full`: what is acknowledged survives a power cut. `normal`: it survives any end of the process."""

_SYNCHRONOUS: Final[dict[Durability, str]] = {
    "full": "PRAGMA synchronous = FULL",
    "normal": "PRAGMA synchronous = NORMAL",
}
_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_WAL_LIMIT: Final = 64 << 20

# Closing any descriptor of a file drops the locks that the whole process has on it, SQLite's included. So a file that
# SQLite has open in this process is not opened beside it.
_open_here: Final[dict[tuple[int, int], int]] = {}
_guard: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Database:
    """Where the database is, and how connections to it behave."""

    path: Path
    durability: Durability = "full"
    busy_seconds: float = 5.0

    @property
    def owners(self) -> Path:
        """The folder of the owners' lock files."""
        return self.path.with_name(self.path.name + ".owners")

    def prepare(self, *, create: bool) -> tuple[int, int]:
        """Make sure that there is a file of ours, or an empty one. Pair it with `forget`.

        Raises:
            Foreign: the file is somebody else's, no store, or newer. It was left untouched.
            Unavailable: it cannot be read or created, or is missing and `create` is off.
        """
        with _guard:
            try:
                key = self._look() if self.path.exists() else self._create(create=create)
            except OSError as error:
                raise Unavailable(f"cannot use {self.path}: {error.strerror}") from error
            _open_here[key] = _open_here.get(key, 0) + 1
            return key

    def connect(self) -> sqlite3.Connection:
        """A connection in autocommit mode, for any thread, one at a time.

        Raises:
            sqlite3.Error: from SQLite.
        """
        connection = sqlite3.connect(
            self.path.absolute().as_uri() + "?mode=rw",
            uri=True,
            timeout=self.busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute(_SYNCHRONOUS[self.durability])
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def connect_reader(self) -> sqlite3.Connection:
        """A connection that cannot write.

        Raises:
            sqlite3.Error: from SQLite.
        """
        connection = self.connect()
        connection.execute("PRAGMA query_only = 1")
        return connection

    def set_up(self, connection: sqlite3.Connection, *, allow_migration: bool) -> SchemaInfo:
        """Bring schema and journal mode to what the store needs.

        Raises:
            Foreign, Unavailable, Damaged: as the names say.
            sqlite3.Error: from SQLite.
        """
        try:
            connection.execute("SELECT fts5_source_id()")
        except sqlite3.OperationalError as error:
            raise Unavailable("this Python's SQLite lacks FTS5, which memory needs; use another build of it") from error
        info = migrate(connection, allowed=allow_migration)
        self._use_wal(connection)
        return info

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self.busy_seconds
        while True:
            try:
                mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                # The busy timeout does not cover every lock that this change needs.
                if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                if mode != "wal":
                    raise Unavailable(f"the file system of {self.path} cannot hold a write-ahead log; use a local disk")
                return

    def _look(self) -> tuple[int, int]:
        found = self.path.stat()
        key = (found.st_dev, found.st_ino)
        if not stat.S_ISREG(found.st_mode):
            raise Foreign(f"{self.path} is not a file")
        if sys.platform != "win32" and found.st_uid != os.geteuid():
            raise Foreign(f"{self.path} belongs to somebody else")
        if key not in _open_here:
            with self.path.open("rb") as file:
                self._look_inside(file.read(_HEADER))
        if sys.platform != "win32" and found.st_mode & 0o077:
            self.path.chmod(0o600)
        return key

    def _look_inside(self, header: bytes) -> None:
        if not header:
            return  # ours to fill: the creator of it may have died before its first write
        if not header.startswith(_MAGIC):
            raise Foreign(f"{self.path} is not a database")
        if len(header) < _HEADER:
            raise Damaged("", f"{self.path} is cut off in its header", {})
        if int.from_bytes(header[68:72]) != APPLICATION_ID:
            raise Foreign(f"{self.path} was not made by agent-sidecar")
        refuse_newer(int.from_bytes(header[60:64]))

    def _create(self, *, create: bool) -> tuple[int, int]:
        if not create:
            raise Unavailable(f"there is no store at {self.path}")
        _make_folders(self.path.parent)
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileExistsError:  # another process was quicker
            return self._look()
        try:
            made = os.fstat(fd)
            return made.st_dev, made.st_ino
        finally:
            os.close(fd)


def forget(key: tuple[int, int]) -> None:
    """Say that a store of this process has closed its connections to a prepared file."""
    with _guard:
        if (left := _open_here.pop(key) - 1) > 0:
            _open_here[key] = left


def _make_folders(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
