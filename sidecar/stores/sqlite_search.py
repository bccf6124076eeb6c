"""Search in long-term memory: full text and nearest vectors of one scope, in one read. Functions of a connection.

A scope is small as a rule, and then all of it is looked at: words are ranked within the scope, and the scan is exact.
In a large one FTS5's own ranking is used, and the vectors stay in memory. Nothing is searched across scopes and
filtered afterwards.
"""

import sqlite3
from typing import Any, Final

from providers.api.memory import Vector
from providers.text_words import query_terms

from .bm25 import CONTEXT, Hits, rank
from .memory_rows import Found, MemoryFilter, QueryVector
from .memory_rules import check_model
from .nearest import Matrices, Matrix, blocks, extended, is_available, nearest
from .sqlite_memory_reads import by_ids
from .sqlite_memory_scopes import WITHIN, Scoped, match, parameters
from .sqlite_memory_writes import model_of

LARGE: Final = 5_000
"""A scope with more records is large."""

_SIZE: Final = Scoped("SELECT count(*) FROM (SELECT 1", "LIMIT :most)")
_LENGTHS: Final = Scoped("SELECT m.id, m.words")
_IDS: Final = Scoped("SELECT m.id")
_VECTORS: Final = Scoped("SELECT m.id, m.vector", "AND m.vector_number > :after AND m.vector_number <= :last")
_HITS: Final = "SELECT rowid FROM memory_words WHERE memory_words MATCH ?"
_RANKED: Final = " ".join(
    (
        "SELECT m.id FROM memory_words CROSS JOIN memories m ON m.id = memory_words.rowid"
        " WHERE memory_words MATCH :match AND",
        WITHIN,
        "ORDER BY bm25(memory_words, 0.0, 1.0, :context) LIMIT :limit",
    )
)
_NEW_VECTORS: Final = " ".join(
    (
        "SELECT m.id, m.vector FROM memories m INDEXED BY memories_filled"
        " WHERE m.vector_number > :after AND m.vector_number <= :last AND",
        WITHIN,
    )
)


def find(
    connection: sqlite3.Connection,
    where: MemoryFilter,
    text: str,
    vector: QueryVector | None,
    limit: int,
    matrices: Matrices,
    *,
    large: int = LARGE,
) -> Found:
    """Both rankings, and the records that they name.

    Raises:
        OtherModel: the collection's vectors are another embedder's.
        Damaged: a record does not read back.
    """
    words = query_terms(text)
    compared = (
        vector is not None
        and is_available()
        and check_model(where.collection, *model_of(connection, where.collection), vector)
    )
    if not words and not compared:
        return Found()
    everybody = MemoryFilter(where.collection, where.scope)
    values = parameters(everybody, most=large + 1)
    is_large = connection.execute(_SIZE.led_by(values), values).fetchone()[0] > large
    by_words = _by_words(connection, where, words, limit, is_large=is_large) if words else {}
    near: list[int] = []
    if vector is not None and compared:
        look = _nearest_in_large if is_large else _nearest
        near = look(connection, where, vector.vector, limit, matrices)
    rows = by_ids(connection, {*by_words, *near})
    return Found(rows, list(by_words), near, by_words, is_cut=len(by_words) == limit or len(near) == limit)


def _by_words(
    connection: sqlite3.Connection, where: MemoryFilter, words: list[str], limit: int, *, is_large: bool
) -> dict[int, float]:
    """Refs, best first, with their coverage; in a large scope nobody has looked at that, and it counts as whole."""
    values = parameters(where, limit=limit, context=CONTEXT)
    if is_large:
        values["match"] = match(values, "{text context}", words)
        return {row[0]: 1.0 for row in connection.execute(_RANKED, values)}
    lengths: dict[int, int] = dict(connection.execute(_LENGTHS.led_by(values), values))
    return rank(lengths, [_hits(connection, values, word) for word in words], limit)


def _hits(connection: sqlite3.Connection, values: dict[str, Any], word: str) -> Hits:
    anywhere = _holders(connection, values, "{text context}", word)
    return Hits(anywhere, _holders(connection, values, "text", word) if anywhere else anywhere)


def _holders(connection: sqlite3.Connection, values: dict[str, Any], columns: str, word: str) -> set[int]:
    rows = connection.execute(_HITS, (match(values, columns, [word]),))
    return {row[0] for row in rows}


def _nearest(connection: sqlite3.Connection, where: MemoryFilter, query: Vector, limit: int, _: Matrices) -> list[int]:
    values = parameters(where, after=0, last=1 << 62)
    rows = connection.execute(_VECTORS.led_by(values), values)
    return [ref for ref, _ in nearest(blocks(rows), query, limit)]


def _nearest_in_large(
    connection: sqlite3.Connection, where: MemoryFilter, query: Vector, limit: int, matrices: Matrices
) -> list[int]:
    matrix = _matrix(connection, where, matrices)
    only = None
    if where.roles is not None or where.exclude_session is not None:
        values = parameters(where)
        only = [row[0] for row in connection.execute(_IDS.led_by(values), values)]
    return [ref for ref, _ in nearest(matrix.blocks, query, limit, only)]


def _matrix(connection: sqlite3.Connection, where: MemoryFilter, matrices: Matrices) -> Matrix:
    """All vectors of a large scope: those that are kept, and what was added since."""
    key = (where.collection, where.scope)
    erased, last = connection.execute(
        "SELECT erased, vectors FROM memory_collections WHERE collection = ?", (where.collection,)
    ).fetchone()
    known = matrices.get(key, erased, last)
    if known is not None and known.last == last:
        return known
    values = parameters(MemoryFilter(*key), after=0 if known is None else known.last, last=last)
    statement = _VECTORS.led_by(values) if known is None else _NEW_VECTORS
    more = list(blocks(connection.execute(statement, values)))
    matrix = extended(known, more, erased, last)
    matrices.put(key, matrix)
    return matrix
