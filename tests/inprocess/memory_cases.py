"""What the tests of long-term memory share: records, a session that writes them, made-up vectors. No tests."""

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from providers.api.memory import EmbedderError, Scope, Vector
from providers.text_words import terms
from sidecar.stores.base import SessionStore
from sidecar.stores.memory_rows import Found, MemoryFilter, MemoryWrite, QueryVector

from .store_cases import first, unit

ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
DIMENSION = 32


def said(memory_id: str, text: str, scope: Scope = ALICE, *, second: int = 0, **fields: Any) -> MemoryWrite:
    """A record; `second` says when."""
    at = f"2026-03-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return MemoryWrite(fields.pop("collection", "memory"), memory_id, scope, text, at, **fields)


async def remember(store: SessionStore, *writes: MemoryWrite, session: str = "s") -> None:
    """Commit records, in a unit of a session that is made if need be."""
    lease = await store.create(session, first(session), key="k")
    await store.commit(unit(session, lease.epoch, lease.seq, memory=writes))


def of(scope: Scope, **fields: Any) -> MemoryFilter:
    return MemoryFilter(fields.pop("collection", "memory"), scope, **fields)


async def texts(store: SessionStore, scope: Scope, text: str, **fields: Any) -> list[str]:
    """What full text finds, best first."""
    return by_words(await store.memories.find(of(scope, **fields), text, None, 50))


def by_words(found: Found) -> list[str]:
    return [found.rows[ref].write.text for ref in found.full_text]


def by_vectors(found: Found) -> list[str]:
    return [found.rows[ref].write.text for ref in found.dense]


def vector(*numbers: float) -> Vector:
    """Of unit length."""
    length = math.sqrt(sum(number * number for number in numbers))
    return struct.pack(f"<{len(numbers)}f", *(number / length for number in numbers))


def made_up(text: str) -> Vector:
    """Texts with common words have near vectors; that is all that it knows of meaning."""
    numbers = [1e-3] * DIMENSION
    for term in terms(text):
        digest = hashlib.sha256(term.encode()).digest()
        for at in range(4):
            numbers[digest[at] % DIMENSION] += 1.0 if digest[at + 4] & 1 else -1.0
    return vector(*numbers)


def asked(text: str, embedder: str = "made-up") -> QueryVector:
    return QueryVector(embedder, made_up(text))


@dataclass
class MadeUpEmbedder:
    """An embedder that counts what it is asked, and fails when it is told to."""

    name: str = "made-up"
    fails: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        if self.fails:
            raise EmbedderError("the embedder rests")
        self.asked += [(role, text) for text in texts]
        return [made_up(text) for text in texts]


async def fill(store: SessionStore, collection: str = "memory") -> None:
    """Give every record that waits for one its made-up vector."""
    await store.memories.use_embedder(collection, "made-up", DIMENSION)
    waiting = await store.memories.pending(collection, 0, 10_000)
    await store.memories.fill(collection, "made-up", [(one.ref, made_up(one.text)) for one in waiting])
