"""Long-term memory as it is written: functions of a connection that stands in a transaction, which is somebody else's.

Rows that go are overwritten (`secure_delete`). The full-text index only marks what was erased, until its segments are
merged: `merge_words` does that in steps, so that other writers come in between.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from providers.api.memory import Vector
from providers.text_words import separated, terms

from .base import Refused
from .memories import OtherModel
from .memory_rows import MemoryFilter, MemoryWrite
from .memory_rules import check_dimension, instant, keys_of, scope_text
from .sqlite_memory_scopes import Scoped, index_words, parameters
from .sqlite_rows import seal

ERASED_AT_ONCE: Final = 500
"""The most records that one transaction erases."""

_MERGED_PAGES: Final = 200
_FIND: Final = "SELECT id, seal FROM memories WHERE collection = ? AND scope = ? AND memory_id = ?"
_INSERT: Final = (
    "INSERT INTO memories (collection, scope, memory_id, application_id, agent_id, user_id, session_id, at, created_at,"
    " role, said_in, words, text, context, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_DOOMED: Final = Scoped(
    "SELECT m.id", "AND m.id <= :last AND (:ids IS NULL OR m.memory_id IN (SELECT value FROM json_each(:ids))) LIMIT :n"
)


def put_memory(connection: sqlite3.Connection, write: MemoryWrite) -> None:
    """Write a record, in place of the one with its id. The very same record again changes nothing."""
    scope, sealed = scope_text(write.scope), memory_seal(write)
    found = connection.execute(_FIND, (write.collection, scope, write.memory_id)).fetchone()
    if found is not None:
        if found[1] == sealed:
            return
        _erase(connection, write.collection, [found[0]])
    connection.execute(
        "INSERT INTO memory_collections (collection) VALUES (?) ON CONFLICT DO NOTHING", (write.collection,)
    )
    words = len(terms(write.text))
    added = connection.execute(
        _INSERT,
        (
            *(write.collection, scope, write.memory_id, *keys_of(write.scope)),
            *(instant(write.created_at), write.created_at, write.role, write.session),
            *(words, write.text, write.context, write.body, sealed),
        ),
    )
    connection.execute(
        "INSERT INTO memory_words (rowid, scope, text, context) VALUES (?, ?, ?, ?)",
        (added.lastrowid, index_words(write), separated(write.text), separated(write.context)),
    )


def memory_seal(write: MemoryWrite) -> int:
    """The checksum of a record's row."""
    return seal(
        write.body,
        *(write.collection, scope_text(write.scope), write.memory_id, write.text, write.context),
        *(write.created_at, write.role, write.session),
    )


def last_id(connection: sqlite3.Connection) -> int:
    """The newest id that was ever given."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
    return 0 if row is None else row[0]


def forget(connection: sqlite3.Connection, where: MemoryFilter, memory_ids: Sequence[str] | None, last: int) -> int:
    """Erase some of a scope's records whose id is at most `last`; 0 once there are none."""
    ids = None if memory_ids is None else json.dumps(list(memory_ids))
    values = parameters(where, ids=ids, last=last, n=ERASED_AT_ONCE)
    doomed: list[int] = [row[0] for row in connection.execute(_DOOMED.led_by(values), values)]
    if doomed:
        _erase(connection, where.collection, doomed)
    return len(doomed)


def merge_words(connection: sqlite3.Connection, *, begin: bool) -> bool:
    """Merge a part of the full-text index, so that what was erased leaves it; whether there is more to do."""
    before = connection.total_changes
    pages = -_MERGED_PAGES if begin else _MERGED_PAGES
    connection.execute("INSERT INTO memory_words (memory_words, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before > 1


def use_embedder(connection: sqlite3.Connection, collection: str, embedder: str, dimension: int) -> None:
    """Note whose vectors a collection gets.

    Raises:
        OtherModel: it has others.
    """
    connection.execute(
        "INSERT INTO memory_collections (collection, embedder, dimension) VALUES (?, ?, ?) ON CONFLICT (collection)"
        " DO UPDATE SET embedder = excluded.embedder, dimension = excluded.dimension WHERE embedder IS NULL",
        (collection, embedder, dimension),
    )
    stored = model_of(connection, collection)
    if stored != (embedder, dimension):
        raise OtherModel(collection, *stored, embedder, dimension)


def model_of(connection: sqlite3.Connection, collection: str) -> tuple[Any, Any]:
    """A collection's embedder and dimension, if it has any."""
    row = connection.execute(
        "SELECT embedder, dimension FROM memory_collections WHERE collection = ?", (collection,)
    ).fetchone()
    return (None, None) if row is None else row


def fill(connection: sqlite3.Connection, collection: str, embedder: str, vectors: Sequence[tuple[int, Vector]]) -> int:
    """Write vectors to the records that still wait for them; returns how many.

    Raises:
        OtherModel, Refused: as the names say.
    """
    stored, dimension = model_of(connection, collection)
    if stored is None:
        raise Refused(f"memory {collection!r} has no embedder yet")
    if stored != embedder:
        raise OtherModel(collection, stored, dimension, embedder, dimension)
    (number,) = connection.execute(
        "SELECT vectors FROM memory_collections WHERE collection = ?", (collection,)
    ).fetchone()
    first = number
    for ref, vector in vectors:
        check_dimension(dimension, vector)
        taken = connection.execute(
            "UPDATE memories SET vector = ?, vector_number = ?"
            " WHERE id = ? AND collection = ? AND vector_number IS NULL",
            (vector, number + 1, ref, collection),
        )
        number += taken.rowcount
    connection.execute("UPDATE memory_collections SET vectors = ? WHERE collection = ?", (number, collection))
    return number - first


def drop_vectors(connection: sqlite3.Connection, collection: str) -> None:
    """Take a collection's vectors, and whose they were."""
    connection.execute(
        "UPDATE memories SET vector = NULL, vector_number = NULL WHERE collection = ? AND vector_number IS NOT NULL",
        (collection,),
    )
    connection.execute(
        "UPDATE memory_collections SET embedder = NULL, dimension = NULL, erased = erased + 1 WHERE collection = ?",
        (collection,),
    )


def _erase(connection: sqlite3.Connection, collection: str, ids: Sequence[int]) -> None:
    rows = [(id_,) for id_ in ids]
    connection.executemany("DELETE FROM memory_words WHERE rowid = ?", rows)
    connection.executemany("DELETE FROM memories WHERE id = ?", rows)
    connection.execute("UPDATE memory_collections SET erased = erased + 1 WHERE collection = ?", (collection,))
