"""The memory of a process: one filler makes its vectors, and what that one dies of reaches nobody else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal

import pytest

from providers.api.memory import Embedder, MemoryQuery, Vector
from sidecar.sessions.memory_access import MemoryAccess
from sidecar.sessions.store_access import StoreAccess
from sidecar.stores.base import Owner, SchemaInfo
from sidecar.stores.memory import MemoryStore

from .memory_cases import ALICE, MadeUpEmbedder, made_up, remember, said
from .store_cases import new_owner

QUERY = MemoryQuery("memory", ALICE, "tea")


class SlowStore(MemoryStore):
    """It opens when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_open = asyncio.Event()

    async def open(self, owner: Owner, *, migrate: bool = True) -> SchemaInfo:
        """See `SessionStore.open`."""
        await self.may_open.wait()
        return await super().open(owner, migrate=migrate)


class Source:
    """Has one embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    async def find(self) -> Embedder:
        """See `EmbedderSource.find`."""
        return self.embedder

    async def aclose(self) -> None:
        """See `EmbedderSource.aclose`."""


class Endless(MadeUpEmbedder):
    """Never done with a passage; counts how many ask at once."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = 0
        self.was_asked = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        """See `Embedder.embed`."""
        if role == "passage":
            self.at_once += 1
            self.was_asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.at_once -= 1
        return [made_up(text) for text in texts]


class Broken(MadeUpEmbedder):
    """Fails as no embedder should, once."""

    def __init__(self) -> None:
        super().__init__()
        self.has_failed = asyncio.Event()
        self.is_done = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        """See `Embedder.embed`."""
        if role == "passage" and not self.has_failed.is_set():
            self.has_failed.set()
            raise UnicodeEncodeError("ascii", "sk-\u201c", 3, 4, "ordinal not in range")
        if role == "passage":
            self.is_done.set()
        return [made_up(text) for text in texts]


@pytest.fixture
async def store() -> AsyncIterator[SlowStore]:
    store = SlowStore()
    yield store
    await store.close()


async def access(store: SlowStore, embedder: Embedder) -> MemoryAccess:
    """The memory of a process with this store, where a record waits for its vector."""
    memory = MemoryAccess(StoreAccess(lambda: store, MemoryStore(), new_owner(), "the store"), Source(embedder))
    await memory.ready()
    return memory


async def test_searches_that_wait_for_the_store_together_begin_one_filler_which_ends_with_the_memory(
    store: SlowStore,
) -> None:
    embedder = Endless()
    memory = await access(store, embedder)
    searches = [asyncio.create_task(memory.search(QUERY)) for _ in range(3)]
    await asyncio.sleep(0)
    store.may_open.set()
    await asyncio.gather(*searches)
    await remember(store, said("1", "I like tea"))
    memory.written()
    async with asyncio.timeout(2):
        await embedder.was_asked.wait()

    await memory.aclose()

    for _ in range(10):  # another one would ask by then
        await asyncio.sleep(0)
    assert embedder.at_once == 0


async def test_what_a_filler_fails_of_is_logged_and_tried_again_and_does_not_come_up_at_the_end(
    store: SlowStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.may_open.set()
    embedder = Broken()
    memory = await access(store, embedder)
    await memory.search(QUERY)
    await remember(store, said("1", "I like tea"))
    async with asyncio.timeout(2):
        memory.written()
        await embedder.has_failed.wait()
        assert [hit.record.text for hit in await memory.search(QUERY)] == ["I like tea"]
        memory.written()
        await embedder.is_done.wait()
    assert "memory: making vectors: UnicodeEncodeError" in caplog.text
    assert "sk-" not in caplog.text

    await memory.aclose()
