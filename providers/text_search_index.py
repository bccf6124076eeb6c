"""Keeps the chunks of a folder's documents and finds them again: a table and FTS5 in one SQLite file, or in memory.

It reads no documents. `ChunkIndex` is what the folder needs of it: one that knows vectors, too, would take its place.
"""

import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from providers.api.errors import ProviderError

from .private_folder import UnsafePlace, open_file, private_folder
from .text_search_walk import Stamp
from .text_words import query_terms, quoted, separated

T = TypeVar("T")

LAYOUT: Final = 2
"""Of the file; another one's files are not opened."""
MAX_QUERY: Final = 8_000
"""Characters of a query that are looked at: the last ones, which are the newest."""
TOKENIZER: Final = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
"""Of FTS5, for columns that hold `separated` text. It stems English."""
NAME_WEIGHT: Final = 2.0
"""What a word in a document's name or heading counts, against one in its text."""

_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS files(
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL, sha256 TEXT NOT NULL, reader TEXT NOT NULL, problem TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks(
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, chunk_id TEXT NOT NULL, name TEXT NOT NULL, link TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS chunks_by_path ON chunks(path);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(name, body, tokenize = "{TOKENIZER}");
"""
_FIND: Final = """
SELECT chunk_id, chunks.name, link, chunks.body, -bm25(words, ?, 1.0) AS score
FROM words JOIN chunks ON chunks.id = words.rowid WHERE words MATCH ? ORDER BY score DESC, words.rowid LIMIT ?
"""
_DAMAGED: Final = frozenset({11, 26})
"""SQLITE_CORRUPT, SQLITE_NOTADB."""


class IndexUnusable(ProviderError):
    """The index cannot be read or written now: the disk is full, or another process holds it."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What is known of a file since it was last looked at."""

    stamp: Stamp
    checked_ns: int
    """When that was: nanoseconds since 1970, as files' times are."""
    sha256: str
    reader: str
    problem: str | None = None
    """Why it has no chunks, if it cannot be read."""


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as it is kept."""

    chunk_id: str
    name: str
    link: str
    body: str


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that was found."""

    chunk: IndexedChunk
    score: float
    """From 0 to 1: how much of what the query's words say stands in it, a rare word counting more."""


class ChunkIndex(Protocol):
    """What keeps chunks and finds them. It may be called from any thread; every method raises `IndexUnusable`."""

    def files(self) -> Mapping[str, IndexedFile]:
        """What is indexed, by path."""
        ...

    def put(self, path: str, file: IndexedFile, chunks: Sequence[IndexedChunk]) -> None:
        """Let these stand in the place of a file's chunks, all at once."""
        ...

    def touch(self, path: str, file: IndexedFile) -> None:
        """Note that a file is still what it was."""
        ...

    def remove(self, paths: Sequence[str]) -> None:
        """Forget files and their chunks."""
        ...

    def search(self, query: str, limit: int) -> Sequence[FoundChunk]:
        """The best chunks, best first, no text twice. A query without words finds nothing."""
        ...


class FullTextIndex:
    """A `ChunkIndex` of words alone. A damaged file is emptied: what it held is read again from the documents."""

    def __init__(self, path: Path | None) -> None:
        """Say where it is. It is opened when it is first used.

        Args:
            path: A file in a folder of our own; `None`: in memory, until nobody holds it any more.
        """
        self._path = path
        self._lock = threading.RLock()
        self._open: list[sqlite3.Connection] = []
        weakref.finalize(self, _close, self._open)

    def files(self) -> Mapping[str, IndexedFile]:
        """What is indexed, by path."""
        sql = "SELECT path, size, mtime_ns, ctime_ns, checked_ns, sha256, reader, problem FROM files"
        rows = self._guarded(lambda: self._database.execute(sql).fetchall())
        return {row[0]: IndexedFile(Stamp(*row[1:4]), *row[4:]) for row in rows}

    def put(self, path: str, file: IndexedFile, chunks: Sequence[IndexedChunk]) -> None:
        """Let these stand in the place of a file's chunks, all at once."""

        def work() -> None:
            with self._transaction() as database:
                _forget(database, path)
                _note(database, path, file)
                for chunk in chunks:
                    added = database.execute(
                        "INSERT INTO chunks(path, chunk_id, name, link, body) VALUES (?, ?, ?, ?, ?)",
                        (path, chunk.chunk_id, chunk.name, chunk.link, chunk.body),
                    )
                    database.execute(
                        "INSERT INTO words(rowid, name, body) VALUES (?, ?, ?)",
                        (added.lastrowid, separated(chunk.name), separated(chunk.body)),
                    )

        self._guarded(work)

    def touch(self, path: str, file: IndexedFile) -> None:
        """Note that a file is still what it was."""

        def work() -> None:
            with self._transaction() as database:
                _note(database, path, file)

        self._guarded(work)

    def remove(self, paths: Sequence[str]) -> None:
        """Forget files and their chunks."""

        def work() -> None:
            with self._transaction() as database:
                for path in paths:
                    _forget(database, path)

        self._guarded(work)

    def search(self, query: str, limit: int) -> Sequence[FoundChunk]:
        """The best chunks, best first, no text twice. A query without words finds nothing."""
        terms = [quoted(term) for term in query_terms(query[-MAX_QUERY:], skip_common=True)]
        return self._guarded(lambda: self._search(terms, limit)) if terms else []

    def _search(self, terms: Sequence[str], limit: int) -> list[FoundChunk]:
        count = self._database.execute("SELECT count(*) FROM chunks").fetchone()[0]
        holding = [
            self._database.execute("SELECT count(*) FROM words WHERE words MATCH ?", (term,)).fetchone()[0]
            for term in terms
        ]
        whole = sum(max(1e-6, math.log((count - number + 0.5) / (number + 0.5))) for number in holding)
        found: dict[str, FoundChunk] = {}
        rows = self._database.execute(_FIND, (NAME_WEIGHT, " OR ".join(terms), limit * 4))
        for chunk_id, name, link, body, score in rows:
            chunk = IndexedChunk(chunk_id, name, link, body)
            found.setdefault(body, FoundChunk(chunk, min(1.0, score / whole)))
        return list(found.values())[:limit]

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do it under the lock; once more with an empty file where the file is damaged."""
        with self._lock:
            try:
                try:
                    return work()
                except sqlite3.DatabaseError as error:
                    if self._path is None or _code(error) not in _DAMAGED:
                        raise
                    _close(self._open)
                    for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
                        self._path.with_name(name).unlink(missing_ok=True)
                    return work()
            except (sqlite3.Error, OSError, UnsafePlace) as error:
                raise IndexUnusable(f"the index of the documents cannot be used: {_why(error)}") from error

    @property
    def _database(self) -> sqlite3.Connection:
        if not self._open:
            self._open.append(_connected(self._path))
        return self._open[0]


def _connected(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        with private_folder(path.parent) as folder:
            os.close(open_file(folder, path.name, os.O_RDWR | os.O_CREAT, path))
    database = sqlite3.connect(path or ":memory:", timeout=10, isolation_level=None, check_same_thread=False)
    try:
        if path is not None:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _close(open_ones: list[sqlite3.Connection]) -> None:
    while open_ones:
        open_ones.pop().close()


def _note(database: sqlite3.Connection, path: str, file: IndexedFile) -> None:
    stamp = file.stamp
    database.execute(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (path, stamp.size, stamp.mtime_ns, stamp.ctime_ns, file.checked_ns, file.sha256, file.reader, file.problem),
    )


def _forget(database: sqlite3.Connection, path: str) -> None:
    database.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE path = ?)", (path,))
    database.execute("DELETE FROM chunks WHERE path = ?", (path,))
    database.execute("DELETE FROM files WHERE path = ?", (path,))


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _why(error: Exception) -> str:
    """Without the text of the error, which may name a machine's path."""
    if isinstance(error, OSError):
        return error.strerror or "failed"
    if isinstance(error, sqlite3.Error):
        return str(getattr(error, "sqlite_errorname", type(error).__name__))
    return "its place is not safe"
