"""Long-term memory as people and embedders read it: functions of a reading connection. Searching is next door."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from providers.api.memory import Scope

from .base import ANY_SIZE, Damaged, Page
from .memory_rows import CollectionInfo, MemoryFilter, MemoryRow, MemoryWrite, Pending
from .paging import cut, encode_position
from .sqlite_memory_scopes import Scoped, parameters
from .sqlite_memory_writes import memory_seal

_COLUMNS: Final = (
    "m.id, m.vector, m.seal, m.collection, m.memory_id, m.text, m.created_at, m.context, m.role, m.said_in, m.body,"
    " m.application_id, m.agent_id, m.session_id, m.user_id, m.at"
)
_NEWEST: Final = Scoped(
    "SELECT " + _COLUMNS, "AND (m.at, m.id) < (:at, :id) ORDER BY m.at DESC, m.id DESC LIMIT :limit"
)
_COUNT: Final = Scoped("SELECT count(*)")
_BY_ID: Final = " ".join(("SELECT", _COLUMNS, "FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"))
_COLLECTIONS: Final = (
    "SELECT c.collection, (SELECT count(*) FROM memories m WHERE m.collection = c.collection),"
    " (SELECT count(*) FROM memories m WHERE m.collection = c.collection AND m.vector_number IS NULL),"
    " c.embedder, c.dimension FROM memory_collections c ORDER BY c.collection"
)
_PENDING: Final = (
    "SELECT id, text, context FROM memories INDEXED BY memories_pending"
    " WHERE collection = ? AND vector_number IS NULL AND id > ? ORDER BY id LIMIT ?"
)
_LATEST: Final = (1 << 62, 1 << 62)


def newest(connection: sqlite3.Connection, where: MemoryFilter, limit: int) -> list[MemoryRow]:
    """The newest records, newest first.

    Raises:
        Damaged: a record does not read back.
    """
    return [row for row, _ in _newest(connection, where, _LATEST, limit)]


def page(
    connection: sqlite3.Connection, where: MemoryFilter, before: tuple[int, int] | None, limit: int
) -> Page[MemoryRow]:
    """A page of records, newest first; `before` is what a cursor holds.

    Raises:
        Damaged: a record does not read back.
    """
    rows = _newest(connection, where, before or _LATEST, max(limit, 1) + 1)
    taken, more = cut(rows, limit, ANY_SIZE, lambda _: 0)
    following = encode_position(taken[-1][1], taken[-1][0].ref) if more else None
    return Page([row for row, _ in taken], following)


def count(connection: sqlite3.Connection, where: MemoryFilter) -> int:
    """How many records there are."""
    values = parameters(where)
    number: int = connection.execute(_COUNT.led_by(values), values).fetchone()[0]
    return number


def by_ids(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, MemoryRow]:
    """Records by their ids.

    Raises:
        Damaged: a record does not read back.
    """
    rows = connection.execute(_BY_ID, (json.dumps(list(ids)),))
    return {row.ref: row for row, _ in map(_row, rows)}


def collections(connection: sqlite3.Connection) -> list[CollectionInfo]:
    """All collections, by name."""
    return [CollectionInfo(*row) for row in connection.execute(_COLLECTIONS)]


def pending(connection: sqlite3.Connection, collection: str, after: int, limit: int) -> Sequence[Pending]:
    """Records without a vector, by id."""
    return [Pending(*row) for row in connection.execute(_PENDING, (collection, after, limit))]


def _newest(
    connection: sqlite3.Connection, where: MemoryFilter, before: tuple[int, int], limit: int
) -> Iterable[tuple[MemoryRow, int]]:
    at, id_ = before
    values = parameters(where, at=at, id=id_, limit=limit)
    return map(_row, connection.execute(_NEWEST.led_by(values), values))


def _row(row: tuple[Any, ...]) -> tuple[MemoryRow, int]:
    """A row of `_COLUMNS`, and when it was said."""
    id_, vector, sealed, collection, memory_id, text, created_at, context, role, said_in, body, *scope, at = row
    write = MemoryWrite(
        collection, memory_id, Scope(*scope), text, created_at, context=context, role=role, session=said_in, body=body
    )
    if memory_seal(write) != sealed:
        raise Damaged("", f"the memory {memory_id!r} of {collection!r} does not match its checksum", {})
    return MemoryRow(id_, write, vector), at
