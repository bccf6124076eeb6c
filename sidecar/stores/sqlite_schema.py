"""The tables of the SQLite store, and the named migrations that lead to them. No queries of the store's work.

`application_id` marks the file as ours and `user_version` counts the migrations. Both stand in the first page of the
file, and that page is written before the journal mode becomes WAL, so that they can be read without opening the file.
"""

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sidecar.crash_points import reached

from .base import Foreign, SchemaInfo, Unavailable

APPLICATION_ID: Final = 0x41534344


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. A released step never changes."""

    name: str
    statements: tuple[str, ...]


_SESSIONS: Final = Migration(
    "sessions",
    (
        # What every commit reads and writes. Small, and apart from `records`, whose bodies may be large.
        """CREATE TABLE sessions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session TEXT NOT NULL UNIQUE,
            create_key TEXT,
            epoch INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            first_seq INTEGER NOT NULL,
            last_position INTEGER NOT NULL,
            owner_id TEXT, owner_pid INTEGER, owner_since TEXT,
            units TEXT NOT NULL
        )""",
        "CREATE INDEX sessions_by_owner ON sessions (owner_id) WHERE owner_id IS NOT NULL",
        """CREATE TABLE records (
            id INTEGER PRIMARY KEY,
            session TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            cwd TEXT, archived INTEGER NOT NULL,
            folded_title TEXT NOT NULL, folded_session TEXT NOT NULL,
            body BLOB NOT NULL, seal INTEGER NOT NULL
        )""",
        "CREATE INDEX records_newest ON records (updated_at, session)",
        "CREATE INDEX records_by_cwd ON records (cwd, updated_at, session)",
        """CREATE TABLE events (
            id INTEGER NOT NULL, seq INTEGER NOT NULL,
            type TEXT NOT NULL, time TEXT NOT NULL, run_id TEXT, message_id TEXT,
            data BLOB NOT NULL, seal INTEGER NOT NULL,
            PRIMARY KEY (id, seq)
        ) WITHOUT ROWID""",
        """CREATE TABLE messages (
            id INTEGER NOT NULL, position INTEGER NOT NULL,
            message_id TEXT NOT NULL, run_id TEXT, in_history INTEGER NOT NULL,
            body BLOB NOT NULL, seal INTEGER NOT NULL,
            UNIQUE (id, position), UNIQUE (id, message_id)
        )""",
        "CREATE INDEX messages_by_run ON messages (id, run_id, position) WHERE run_id IS NOT NULL",
        """CREATE TABLE state (
            id INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, seal INTEGER NOT NULL,
            PRIMARY KEY (id, key)
        ) WITHOUT ROWID""",
        """CREATE TABLE runs (
            id INTEGER NOT NULL, run_id TEXT NOT NULL, ended INTEGER NOT NULL,
            body BLOB NOT NULL, seal INTEGER NOT NULL,
            UNIQUE (id, run_id)
        )""",
        "CREATE INDEX runs_unfinished ON runs (id) WHERE ended = 0",
        """CREATE TABLE calls (
            id INTEGER NOT NULL, run_id TEXT NOT NULL, call_id TEXT NOT NULL, open INTEGER NOT NULL,
            body BLOB NOT NULL, seal INTEGER NOT NULL,
            UNIQUE (id, run_id, call_id)
        )""",
        "CREATE INDEX calls_open ON calls (id) WHERE open = 1",
        """CREATE TABLE requests (
            id INTEGER NOT NULL, request_id TEXT NOT NULL, body BLOB NOT NULL, seal INTEGER NOT NULL,
            PRIMARY KEY (id, request_id)
        ) WITHOUT ROWID""",
        """CREATE TABLE memory (
            collection TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, seal INTEGER NOT NULL,
            PRIMARY KEY (collection, key)
        ) WITHOUT ROWID""",
    ),
)

_MEMORIES: Final = Migration(
    "memories",
    (
        "DROP TABLE memory",  # nothing has ever written it
        """CREATE TABLE memory_collections (
            collection TEXT PRIMARY KEY,
            embedder TEXT, dimension INTEGER,
            erased INTEGER NOT NULL DEFAULT 0,
            vectors INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID""",
        # An id is never used twice, so that a vector that comes late finds its own text or nothing.
        """CREATE TABLE memories (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            collection TEXT NOT NULL, scope TEXT NOT NULL, memory_id TEXT NOT NULL,
            application_id TEXT, agent_id TEXT, user_id TEXT, session_id TEXT,
            at INTEGER NOT NULL, created_at TEXT NOT NULL,
            role TEXT, said_in TEXT, words INTEGER NOT NULL,
            text TEXT NOT NULL, context TEXT NOT NULL, body BLOB NOT NULL, seal INTEGER NOT NULL,
            vector_number INTEGER, vector BLOB,
            UNIQUE (collection, scope, memory_id)
        )""",
        "CREATE INDEX memories_by_application ON memories (collection, application_id, at)"
        " WHERE application_id IS NOT NULL",
        "CREATE INDEX memories_by_agent ON memories (collection, agent_id, at) WHERE agent_id IS NOT NULL",
        "CREATE INDEX memories_by_user ON memories (collection, user_id, at) WHERE user_id IS NOT NULL",
        "CREATE INDEX memories_by_session ON memories (collection, session_id, at) WHERE session_id IS NOT NULL",
        "CREATE INDEX memories_pending ON memories (collection, id) WHERE vector_number IS NULL",
        "CREATE INDEX memories_filled ON memories (collection, vector_number) WHERE vector_number IS NOT NULL",
        # Marks belong to letters: without them most scripts of India would fall apart.
        """CREATE VIRTUAL TABLE memory_words USING fts5 (
            scope, text, context, tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
        )""",
    ),
)

MIGRATIONS: Final = (_SESSIONS, _MEMORIES)
VERSION: Final = len(MIGRATIONS)

DELETE_SESSION: Final = (
    "DELETE FROM sessions WHERE id = ?",
    "DELETE FROM records WHERE id = ?",
    "DELETE FROM events WHERE id = ?",
    "DELETE FROM messages WHERE id = ?",
    "DELETE FROM state WHERE id = ?",
    "DELETE FROM runs WHERE id = ?",
    "DELETE FROM calls WHERE id = ?",
    "DELETE FROM requests WHERE id = ?",
)
"""Takes a session out of every table."""


def migrate(connection: sqlite3.Connection, *, allowed: bool) -> SchemaInfo:
    """Bring the schema up to date, in one transaction: another process sees none of it or all of it.

    Raises:
        Foreign: the file is no store of ours, or its schema is newer. Nothing was written.
        Unavailable: the schema is older, and migrating was not allowed.
        sqlite3.Error: from SQLite.
    """
    connection.execute("BEGIN")
    try:
        found = _version(connection)
    finally:
        connection.execute("ROLLBACK")
    if found == VERSION:
        return SchemaInfo(VERSION)
    if not allowed:
        raise Unavailable(f"the store has schema {found}, this version needs {VERSION}, and migrating was not allowed")
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _version(connection)  # again: another process may have been quicker
        if found < VERSION:
            _apply(connection, found)
        reached("store.migrate.before")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    reached("store.migrate.after")
    return SchemaInfo(VERSION, migrated_from=found if 0 < found < VERSION else None)


def refuse_newer(version: int) -> None:
    """Refuse a schema that a later version of ours has made.

    Raises:
        Foreign: it is newer.
    """
    if version > VERSION:
        raise Foreign(f"the store has schema {version}, this version knows {VERSION}; a newer version has written it")


def _version(connection: sqlite3.Connection) -> int:
    """The schema's version, read at one instant: another process may be creating the schema."""
    application, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise Foreign("the database was not made by agent-sidecar")
    refuse_newer(version)
    return version


def _apply(connection: sqlite3.Connection, found: int) -> None:
    if found == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)")
    for version, migration in enumerate(MIGRATIONS[found:], found + 1):
        for statement in migration.statements:
            connection.execute(statement)
        row = (version, migration.name, datetime.now(UTC).isoformat(timespec="seconds"))
        connection.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA user_version = {VERSION}")
