"""The memory that providers search: a store's records, found by words and by vectors, in one order. It writes nothing.

Writing is staged with a run and commits with it; vectors come later (`vector_filler`).
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from providers.api.memory import (
    Embedder,
    EmbedderError,
    MemoryHit,
    MemoryPage,
    MemoryQuery,
    MemoryRecord,
    MemoryUnavailable,
    Scope,
    ScopeRefused,
)
from sidecar.stores.base import Refused, StoreError
from sidecar.stores.memories import Memories
from sidecar.stores.memory_rows import Found, MemoryFilter, QueryVector
from sidecar.stores.memory_rules import check_scope, instant, is_blank

from .fusion import Ranking, Weights, aged, fuse, trusted
from .likeness import Likeness, SameIf
from .records import record_of
from .selection import Group, folded, replies_allowed, select

_log = logging.getLogger(__name__)

_WINDOW: Final = 40
_PER_HIT: Final = 8
_WIDER: Final = 4
_WIDEST: Final = 4_000
"""How many of each ranking are looked at: more where most of them say the same."""


def _utc() -> datetime:
    return datetime.now(UTC)


class StoredMemory:
    """Implements `Memory` over a store; each method is described there."""

    def __init__(
        self,
        memories: Memories,
        *,
        embedder: Embedder | None = None,
        weights: Weights | None = None,
        same_if: SameIf | None = None,
        now: Callable[[], datetime] = _utc,
    ) -> None:
        """Search in a store.

        Args:
            memories: Where the records are.
            embedder: Turns queries into vectors; `None`: full text alone.
            weights: What full text and vectors count.
            same_if: When two records say the same.
            now: The time against which age counts.
        """
        self._memories = memories
        self._embedder = embedder
        self._problem: str | None = None
        self._weights = weights or Weights()
        self._same_if = same_if or SameIf()
        self._now = now

    @property
    def embedder(self) -> str | None:
        """See `Memory.embedder`."""
        return self._embedder.name if self._embedder is not None else None

    @property
    def problem(self) -> str | None:
        """See `Memory.problem`."""
        return self._problem

    async def search(self, query: MemoryQuery) -> Sequence[MemoryHit]:
        """See `Memory.search`."""
        where = MemoryFilter(query.collection, query.scope, query.roles, query.exclude_session)
        with _told():
            check_scope(query.scope)
            if is_blank(query.text) or query.limit < 1:
                return []
            vector = await self._embed(query.text)
            window = max(_WINDOW, _PER_HIT * query.limit)
            while True:
                found = await self._memories.find(where, query.text, vector, window)
                groups, likeness = await asyncio.to_thread(self._rank, found, query)
                if not (found.is_cut and window < _WIDEST and _is_wanting(groups, query)):
                    break
                window *= _WIDER
        best = select(groups, query.limit, query.diversity, likeness)
        return [MemoryHit(record_of(group.row), group.score, group.count) for group in best]

    async def newest(self, collection: str, scope: Scope, limit: int) -> Sequence[MemoryRecord]:
        """See `Memory.newest`."""
        with _told():
            rows = await self._memories.newest(MemoryFilter(collection, scope), limit)
        return [record_of(row) for row in reversed(rows)]

    async def page(self, collection: str, scope: Scope, cursor: str | None, limit: int) -> MemoryPage:
        """See `Memory.page`."""
        with _told():
            page = await self._memories.page(MemoryFilter(collection, scope), cursor, limit)
        return MemoryPage([record_of(row) for row in page.items], page.next)

    async def delete(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """See `Memory.delete`."""
        with _told():
            return await self._memories.forget(collection, scope, memory_ids)

    async def count(self, collection: str, scope: Scope) -> int:
        """See `Memory.count`."""
        with _told():
            return await self._memories.count(MemoryFilter(collection, scope))

    async def _embed(self, text: str) -> QueryVector | None:
        """The query's vector; none where it cannot be had now, and then full text has to do."""
        if self._embedder is None:
            return None
        try:
            (vector,) = await self._embedder.embed([text], role="query")
        except EmbedderError as error:
            _log.warning("memory is searched by full text alone: %s", error)
            self._problem = str(error)
            return None
        self._problem = None
        return QueryVector(self._embedder.name, vector)

    def _rank(self, found: Found, query: MemoryQuery) -> tuple[list[Group], Likeness]:
        worth = trusted(found.coverage) if found.dense and self._weights.dense else {}
        words = Ranking(found.full_text, self._weights.full_text, worth)
        scores = fuse([words, Ranking(found.dense, self._weights.dense)])
        created = {ref: instant(row.write.created_at) for ref, row in found.rows.items()}
        now = instant(self._now().isoformat())
        scores = aged(scores, created, now, query.recency_half_life_days)
        wanted = {ref: score for ref, score in scores.items() if query.min_score is None or score >= query.min_score}
        likeness = Likeness((found.rows[ref] for ref in wanted), self._same_if)
        return folded(found.rows, wanted, likeness), likeness


def _is_wanting(groups: Sequence[Group], query: MemoryQuery) -> bool:
    """Whether looking further may bring better hits: records that say the same, or replies, have filled the window."""
    told = sum(not group.is_reply for group in groups)
    return len(groups) < query.limit or (query.roles is None and told < query.limit - replies_allowed(query.limit))


@contextmanager
def _told() -> Generator[None]:
    """Tell a store's errors as the port's."""
    try:
        yield
    except Refused as error:
        raise ScopeRefused(str(error)) from error
    except StoreError as error:
        raise MemoryUnavailable(str(error)) from error
