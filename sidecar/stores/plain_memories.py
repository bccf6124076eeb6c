"""Long-term memory that lives and dies with its process: plain dicts, for ephemeral sessions and tests."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from providers.api.memory import Scope, Vector
from providers.text_words import query_terms, terms

from .base import ANY_SIZE, Page, Refused, Unavailable
from .bm25 import Hits, rank
from .english import stem
from .memories import OtherModel
from .memory_rows import CollectionInfo, Found, MemoryFilter, MemoryRow, MemoryWrite, Pending, QueryVector
from .memory_rules import check_dimension, check_filter, check_model, check_scope, instant, keys_of
from .nearest import blocks, is_available, nearest
from .paging import cut, decode_position, encode_position


@dataclass(slots=True)
class _Collection:
    embedder: str | None = None
    dimension: int | None = None


class PlainMemories:
    """Implements `Memories`; each method is described there."""

    def __init__(self) -> None:
        """Start empty and closed; `is_open` follows the store's opening and closing."""
        self.is_open = False
        self._collections: dict[str, _Collection] = {}
        self._rows: dict[int, MemoryRow] = {}
        self._refs: dict[tuple[str, Scope, str], int] = {}
        self._last = 0

    def put(self, write: MemoryWrite) -> None:
        """Write a record, in place of the one with its id. The very same record again changes nothing."""
        key = (write.collection, write.scope, write.memory_id)
        if (known := self._refs.get(key)) is not None:
            if self._rows[known].write == write:
                return
            self._erase([known])
        self._collections.setdefault(write.collection, _Collection())
        self._last += 1
        self._rows[self._last], self._refs[key] = MemoryRow(self._last, write), self._last

    async def find(self, where: MemoryFilter, text: str, vector: QueryVector | None, limit: int) -> Found:
        """See `Memories.find`."""
        check_filter(where)
        words, compared = query_terms(text), False
        if vector is not None and is_available():
            known = self._collections.get(where.collection, _Collection())
            compared = check_model(where.collection, known.embedder, known.dimension, vector)
        rows = self._within(where) if words or compared else []
        return await asyncio.to_thread(_find, rows, words, vector if compared else None, limit)

    async def newest(self, where: MemoryFilter, limit: int) -> Sequence[MemoryRow]:
        """See `Memories.newest`."""
        check_filter(where)
        return sorted(self._within(where), key=_position, reverse=True)[:limit]

    async def page(self, where: MemoryFilter, cursor: str | None, limit: int) -> Page[MemoryRow]:
        """See `Memories.page`."""
        check_filter(where)
        before = None if cursor is None else decode_position(cursor)
        rows = sorted(self._within(where), key=_position, reverse=True)
        left = (row for row in rows if before is None or _position(row) < before)
        taken, more = cut(left, limit, ANY_SIZE, lambda _: 0)
        return Page(taken, encode_position(*_position(taken[-1])) if more else None)

    async def count(self, where: MemoryFilter) -> int:
        """See `Memories.count`."""
        check_filter(where)
        return len(self._within(where))

    async def forget(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """See `Memories.forget`."""
        check_scope(scope)
        doomed = [
            row.ref
            for row in self._within(MemoryFilter(collection, scope))
            if memory_ids is None or row.write.memory_id in memory_ids
        ]
        self._erase(doomed)
        return len(doomed)

    async def collections(self) -> Sequence[CollectionInfo]:
        """See `Memories.collections`."""
        self._require()
        return [self._info(name) for name in sorted(self._collections)]

    async def use_embedder(self, collection: str, embedder: str, dimension: int) -> None:
        """See `Memories.use_embedder`."""
        self._require()
        found = self._collections.setdefault(collection, _Collection())
        if found.embedder is None or found.dimension is None:
            found.embedder, found.dimension = embedder, dimension
        elif (found.embedder, found.dimension) != (embedder, dimension):
            raise OtherModel(collection, found.embedder, found.dimension, embedder, dimension)

    async def pending(self, collection: str, after: int, limit: int) -> Sequence[Pending]:
        """See `Memories.pending`."""
        waiting = (row for row in self._of(collection) if row.vector is None and row.ref > after)
        return [Pending(row.ref, row.write.text, row.write.context) for row in islice(waiting, limit)]

    async def fill(self, collection: str, embedder: str, vectors: Sequence[tuple[int, Vector]]) -> int:
        """See `Memories.fill`."""
        self._require()
        known = self._collections.get(collection, _Collection())
        if known.embedder is None or known.dimension is None:
            raise Refused(f"memory {collection!r} has no embedder yet")
        if known.embedder != embedder:
            raise OtherModel(collection, known.embedder, known.dimension, embedder, known.dimension)
        for _, vector in vectors:
            check_dimension(known.dimension, vector)
        taken = {
            ref: vector
            for ref, vector in vectors
            if (row := self._rows.get(ref)) and row.vector is None and row.write.collection == collection
        }
        self._rows.update({ref: replace(self._rows[ref], vector=vector) for ref, vector in taken.items()})
        return len(taken)

    async def drop_vectors(self, collection: str) -> None:
        """See `Memories.drop_vectors`."""
        self._require()
        if collection in self._collections:
            self._collections[collection] = _Collection()
        self._rows.update({row.ref: replace(row, vector=None) for row in self._of(collection)})

    def _of(self, collection: str) -> Iterable[MemoryRow]:
        self._require()
        return (row for row in self._rows.values() if row.write.collection == collection)

    def _require(self) -> None:
        if not self.is_open:
            raise Unavailable("the store is not open")

    def _within(self, where: MemoryFilter) -> list[MemoryRow]:
        asked = keys_of(where.scope)
        return [
            row
            for row in self._of(where.collection)
            if all(key in (None, mine) for key, mine in zip(asked, keys_of(row.write.scope), strict=True))
            and (where.roles is None or row.write.role in where.roles)
            and (where.exclude_session is None or row.write.session != where.exclude_session)
        ]

    def _info(self, name: str) -> CollectionInfo:
        rows, known = list(self._of(name)), self._collections[name]
        waiting = sum(row.vector is None for row in rows)
        return CollectionInfo(name, len(rows), waiting, known.embedder, known.dimension)

    def _erase(self, refs: Sequence[int]) -> None:
        for ref in refs:
            write = self._rows.pop(ref).write
            del self._refs[write.collection, write.scope, write.memory_id]


def _position(row: MemoryRow) -> tuple[int, int]:
    return instant(row.write.created_at), row.ref


def _find(rows: Sequence[MemoryRow], words: Sequence[str], vector: QueryVector | None, limit: int) -> Found:
    by_ref = {row.ref: row for row in rows}
    ranked = _ranked(rows, words, limit) if words else {}
    near: list[int] = []
    if vector is not None:
        filled = ((row.ref, row.vector) for row in rows if row.vector is not None)
        near = [ref for ref, _ in nearest(blocks(filled), vector.vector, limit)]
    found = {ref: by_ref[ref] for ref in (*ranked, *near)}
    return Found(found, list(ranked), near, ranked, is_cut=len(ranked) == limit or len(near) == limit)


def _ranked(rows: Sequence[MemoryRow], words: Sequence[str], limit: int) -> dict[int, float]:
    hits: dict[str, tuple[set[int], set[int]]] = {stem(word): (set(), set()) for word in words}
    lengths: dict[int, int] = {}
    for row in rows:
        own = _stems(row.write.text)
        lengths[row.ref] = len(own)
        for word in hits.keys() & (own | _stems(row.write.context)):
            anywhere, text = hits[word]
            anywhere.add(row.ref)
            if word in own:
                text.add(row.ref)
    return rank(lengths, [Hits(*where) for where in hits.values()], limit)


def _stems(text: str) -> set[str]:
    return {stem(word) for word in terms(text)}
