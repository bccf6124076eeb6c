"""Long-term memory under load: 100,000 records of 1,000 users, searched by words and vectors together. In process.

Vectors are made up: near for texts of one topic. Every hit of every search is held against the scope that asked; a
foreign one ends the benchmark with an error.
"""

import asyncio
import hashlib
import itertools
import random
import statistics
import struct
import time
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from providers.api.memory import MemoryQuery, MemoryRecord, Scope, Vector
from sidecar.memory.records import write_of
from sidecar.memory.retrieval import StoredMemory
from sidecar.stores.base import Event, Owner, PutMessage, PutSession, Unit
from sidecar.stores.memory_rows import MemoryWrite
from sidecar.stores.sqlite import SqliteStore

from .report import Aim, Baseline, Figure
from .workspace import Workspace

_DIMENSION: Final = 512
_USERS: Final = 1_000
_TOPICS: Final = 200
_WORDS: Final = 20_000
_BATCH: Final = 1_000
_TIME: Final = "2026-03-01T00:00:00Z"
_AIM: Final = Aim("<=", 1.0, "Words are ranked within the scope, term by term, in Python; a busy machine doubles it.")
_LIMIT_MS: Final = 50.0
_ADDED_MS: Final = 5.0
_COLLECTION: Final = "memory"


def measure(workspace: Workspace) -> list[Figure]:
    """Milliseconds of a search, and of a turn's commit with and without memory."""
    return asyncio.run(_measure(workspace))


async def _measure(workspace: Workspace) -> list[Figure]:
    records, searches = workspace.times(100_000, 10_000), workspace.times(10_000, 500)
    users = min(_USERS, records // 100)
    store = SqliteStore(workspace.folder / "memory-load.db", durability="normal")
    await store.open(Owner(uuid.uuid4().hex, 1, _TIME))
    try:
        load = _Load(store, users)
        written = await load.write(records)
        cpu = time.process_time()
        one_by_one = await load.search(searches)
        cpu = (time.process_time() - cpu) / searches * 1e3
        at_once = await load.search(searches // 5, together=8)
        bare, remembered = await load.turns(workspace.times(300, 60))
    finally:
        await store.close()
    limit = Baseline("the limit", [_LIMIT_MS])
    added = [with_memory - without for with_memory, without in zip(remembered, bare, strict=True)]
    name = f"{records:,} memories of {users:,} users"
    return [
        Figure(f"{name}, written", "/s", written),
        Figure("  hybrid search in one scope, median", "ms", one_by_one),
        Figure("    its p95", "ms", [_p95(one_by_one)], limit, _AIM),
        Figure("    its CPU time, mean", "ms", [cpu]),
        Figure("  8 searches at once, p95 of one", "ms", [_p95(at_once)]),
        Figure("  what 2 records add to a turn", "ms", added, Baseline("the limit", [_ADDED_MS]), _AIM),
    ]


class _Load:
    """Made-up people, and what they have said."""

    def __init__(self, store: SqliteStore, users: int) -> None:
        self._store = store
        self._users = users
        self._chance = random.Random(20261130)
        self._words = [f"{_word(n)}" for n in range(_WORDS)]
        self._weights = list(itertools.accumulate(1 / (n + 3) for n in range(_WORDS)))
        self._memory = StoredMemory(store.memories, embedder=_Embedder())
        self._ids = itertools.count()

    async def write(self, count: int) -> list[float]:
        """Write records, then their vectors; how many a second, for each batch."""
        lease = await self._store.create("load", _unit("load", PutSession(b"{}", _TIME)))
        await self._store.memories.use_embedder(_COLLECTION, _Embedder.name, _DIMENSION)
        rates: list[float] = []
        for _ in range(0, count, _BATCH):
            batch = [self._record(f"user-{self._chance.randrange(self._users)}") for _ in range(_BATCH)]
            began = time.perf_counter()
            await self._store.commit(Unit(uuid.uuid4().hex, "load", lease.epoch, lease.seq, memory=batch))
            pending = await self._store.memories.pending(_COLLECTION, 0, _BATCH)
            vectors = [(one.ref, _vector(one.text)) for one in pending]
            await self._store.memories.fill(_COLLECTION, _Embedder.name, vectors)
            rates.append(_BATCH / (time.perf_counter() - began))
        return rates

    async def search(self, count: int, together: int = 1) -> list[float]:
        """Milliseconds of each search, each of another user."""
        taken: list[float] = []
        for _ in range(0, count, together):
            taken += await asyncio.gather(*(self._search() for _ in range(together)))
        return taken

    async def _search(self) -> float:
        user = f"user-{self._chance.randrange(self._users)}"
        text = self._said(self._chance.randint(4, 16))
        began = time.perf_counter()
        hits = await self._memory.search(MemoryQuery(_COLLECTION, Scope(user_id=user), text, limit=5, diversity=0.3))
        taken = (time.perf_counter() - began) * 1e3
        foreign = [hit for hit in hits if hit.record.scope.user_id != user or user not in hit.record.text.split()]
        if foreign or not hits:
            raise RuntimeError(f"{user} was shown {len(hits)} records, {len(foreign)} of them of others")
        return taken

    async def turns(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds of a turn's commit, without memory and with two records, in turn."""
        lease = await self._store.create("turns", _unit("turns", PutSession(b"{}", _TIME)))
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(count * 2):
            memory = [self._record("user-1") for _ in range(2)] if number % 2 else []
            message = PutMessage(f"m{number}", None, b'{"text": "hello"}')
            event = Event(number + 1, "message.completed", _TIME, b"{}", None, message.message_id)
            began = time.perf_counter()
            await self._store.commit(
                Unit(uuid.uuid4().hex, "turns", lease.epoch, number, [event], [message], memory=memory)
            )
            taken[number % 2].append((time.perf_counter() - began) * 1e3)
        return taken

    def _record(self, user: str) -> MemoryWrite:
        number = next(self._ids)
        at = f"2026-03-{number % 28 + 1:02}T{number % 24:02}:00:00Z"
        role = "assistant" if number % 2 else "user"
        text, context = f"{user} {self._said(30)}", self._said(40)
        return write_of(
            MemoryRecord(
                *(f"m{number}", _COLLECTION, Scope("app", "agent", None, user), text, at, role),
                session_id=f"s{number // 10}",
                context=context,
            )
        )

    def _said(self, words: int) -> str:
        topic = f"topic{self._chance.randrange(_TOPICS)}"
        return " ".join([topic, *self._chance.choices(self._words, cum_weights=self._weights, k=words)])


class _Embedder:
    """Knows a text's topic, and nothing else."""

    name = "made-up"

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        return [_vector(text) for text in texts]


def _vector(text: str) -> Vector:
    topic = next((word for word in text.split() if word.startswith("topic")), "")
    salt = hashlib.sha256(text.encode()).digest()[0] % 16
    return _noisy(topic, salt)


@cache
def _noisy(topic: str, salt: int) -> Vector:
    base, noise = random.Random(topic), random.Random(f"{topic} {salt}")
    numbers = [base.gauss(0, 1) + noise.gauss(0, 0.5) for _ in range(_DIMENSION)]
    length = sum(number * number for number in numbers) ** 0.5
    return struct.pack(f"<{_DIMENSION}f", *(number / length for number in numbers))


def _word(number: int) -> str:
    letters = ""
    while True:
        number, digit = divmod(number, 80)
        letters += "bcdfghjklmnprstvz"[digit % 16] + "aeiou"[digit // 16]
        if not number:
            return letters


def _unit(session: str, record: PutSession) -> Unit:
    return Unit(uuid.uuid4().hex, session, 1, 0, puts=(record,))


def _p95(samples: Sequence[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1]


if __name__ == "__main__":
    raise SystemExit(f"run it as: python -m benchmarks {Path(__file__).stem.replace('_', '-')}")
