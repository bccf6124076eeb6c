"""Conversations in a real store, written in several ways, and questions asked of them. It knows no figures."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from providers.api.memory import Embedder, MemoryQuery, MemoryRecord, Scope
from sidecar.memory.fusion import Weights
from sidecar.memory.records import write_of
from sidecar.memory.retrieval import StoredMemory
from sidecar.memory.vector_filler import VectorFiller
from sidecar.stores.base import PutSession, SessionStore, Unit
from sidecar.stores.memories import Memories
from sidecar.stores.memory_rows import MemoryFilter, QueryVector

from .recall_set import NOW, Question, Turn

_TIME: Final = NOW.isoformat()
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Written:
    """How a turn becomes records, and records become vectors."""

    name: str
    turns_around: int = 0
    """So many turns before and after it are searched with a record, beside the other half of its own."""
    with_context: bool = False
    """Whether a record's vector is made of its neighbours too."""
    stamped: bool = False
    """Whether speaker and date stand in the text."""


@dataclass(frozen=True, slots=True)
class System:
    """How records are found. The defaults are the plainest ones."""

    name: str
    full_text: float = 0.0
    dense: float = 0.0
    diversity: float = 0.0
    half_life_days: float | None = None
    plain: bool = False
    """The reference's design: the nearest vectors as they are, with nothing folded and nothing chosen."""
    query_turns: int = 0
    """How many earlier turns of its session a question is asked with."""


class Index:
    """All conversations as one collection, searched by person."""

    def __init__(self, memories: Memories, collection: str, embedder: Embedder | None) -> None:
        self._memories = memories
        self._collection = collection
        self._embedder = embedder

    async def find(self, question: Question, system: System, limit: int) -> list[str]:
        """The ids of what is found, best first."""
        text = asked(question, system.query_turns)
        scope = Scope(user_id=question.user)
        if system.plain:
            return await self._nearest(MemoryFilter(self._collection, scope), text, limit)
        memory = StoredMemory(
            self._memories,
            embedder=self._embedder if system.dense else None,
            weights=Weights(system.full_text, system.dense),
            now=lambda: NOW,
        )
        query = MemoryQuery(
            self._collection,
            scope,
            text,
            limit,
            recency_half_life_days=system.half_life_days,
            diversity=system.diversity,
        )
        return [hit.record.memory_id for hit in await memory.search(query)]

    async def _nearest(self, where: MemoryFilter, text: str, limit: int) -> list[str]:
        if self._embedder is None:
            return []
        (vector,) = await self._embedder.embed([text], role="query")
        found = await self._memories.find(where, "", QueryVector(self._embedder.name, vector), limit)
        return [found.rows[ref].write.memory_id for ref in found.dense]


def asked(question: Question, turns: int) -> str:
    """What is searched with: newest first, as the provider does it."""
    return "\n".join(reversed([*(question.before[-turns:] if turns else ()), question.text]))


async def write(store: SessionStore, turns: Sequence[Turn], written: Written, embedder: Embedder | None) -> None:
    """Store all turns as one collection of that name, with their vectors."""
    session = f"of {written.name}"
    key = PutSession(b"{}", _TIME)
    lease = await store.create(session, Unit(uuid.uuid4().hex, session, 1, 0, puts=(key,)))
    records = [record for place in range(len(turns)) for record in _records(turns, place, written)]
    for start in range(0, len(records), _BATCH):
        writes = [write_of(record) for record in records[start : start + _BATCH]]
        await store.commit(Unit(uuid.uuid4().hex, session, lease.epoch, lease.seq, memory=writes))
    if embedder is not None:
        await VectorFiller(store.memories, embedder, with_context=written.with_context).fill(written.name)


def _records(turns: Sequence[Turn], place: int, written: Written) -> tuple[MemoryRecord, MemoryRecord]:
    turn, around = turns[place], written.turns_around
    near = [one for one in turns[max(0, place - around) : place + around + 1] if one.session == turn.session]
    others = [text for one in near if one is not turn for text in (one.request, one.reply)]
    asked_id, answered_id = turn.ids
    request = MemoryRecord(
        asked_id,
        written.name,
        Scope(user_id=turn.user),
        _stamped(turn, "user", turn.request, written),
        turn.at.isoformat(),
        role="user",
        session_id=turn.session,
        context="\n".join([turn.reply, *others]),
    )
    reply = replace(
        request,
        memory_id=answered_id,
        text=_stamped(turn, "assistant", turn.reply, written),
        role="assistant",
        context="\n".join([turn.request, *others]),
    )
    return request, reply


def _stamped(turn: Turn, role: str, text: str, written: Written) -> str:
    return f"[{turn.at:%Y-%m-%d}, {role}] {text}" if written.stamped else text
