"""Long-term memory as sessions use it: the search in the durable store, and vectors that follow what is written.

What is remembered is committed with its run and found by its words at once. Vectors are made after the answer, in the
background, and over restarts: what has none when memory is first used gets its own then.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from providers.api.memory import (
    Embedder,
    EmbedderError,
    Memory,
    MemoryHit,
    MemoryPage,
    MemoryQuery,
    MemoryRecord,
    MemoryUnavailable,
    Scope,
)
from sidecar.errors import SidecarError, new_error_id
from sidecar.memory.retrieval import StoredMemory
from sidecar.memory.vector_filler import VectorFiller
from sidecar.stores.base import SessionStore, StoreError
from sidecar.telemetry import LOGGER, log_failure

from .store_access import StoreAccess


class EmbedderSource(Protocol):
    """Where the embedder comes from."""

    async def find(self) -> Embedder | None:
        """The embedder; `None`: full text alone. Raises `SidecarError` if the configuration names one that is not."""
        ...

    async def aclose(self) -> None:
        """Let go of what it holds."""
        ...


class MemoryAccess:
    """The long-term memory of one process, for all its sessions: `Memory`, whose store is opened at its first use."""

    def __init__(self, stores: StoreAccess, embedder: EmbedderSource) -> None:
        """Nothing is opened or loaded yet.

        Args:
            stores: Where the durable store is.
            embedder: Finds the embedder of the configuration.
        """
        self._stores = stores
        self._source = embedder
        self._found: Embedder | None = None
        self._is_ready = False
        self._memory: StoredMemory | None = None
        self._due = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None

    async def ready(self) -> Memory:
        """Find the embedder; the store stays as it is.

        Raises:
            SidecarError: the configuration names one that there is not.
        """
        if not self._is_ready:
            self._found = await self._source.find()
            self._is_ready = True
        return self

    def keeps(self, store: SessionStore) -> bool:
        """Whether what is said in a session of this store is remembered: an ephemeral one leaves nothing behind."""
        return store is not self._stores.ephemeral

    def written(self) -> None:
        """Something new has no vector yet."""
        self._due.set()

    async def aclose(self) -> None:
        """Stop; what has no vector yet gets it in the next process."""
        filling, self._filling = self._filling, None
        if filling is not None:
            filling.cancel()
            with suppress(asyncio.CancelledError):
                await filling
        await self._source.aclose()

    # ---- Memory ---------------------------------------------------------------------------------------------------

    @property
    def embedder(self) -> str | None:
        """See `Memory.embedder`."""
        return self._found.name if self._found is not None else None

    @property
    def problem(self) -> str | None:
        """See `Memory.problem`."""
        return self._memory.problem if self._memory is not None else None

    async def search(self, query: MemoryQuery) -> Sequence[MemoryHit]:
        """See `Memory.search`."""
        return await (await self._open()).search(query)

    async def newest(self, collection: str, scope: Scope, limit: int) -> Sequence[MemoryRecord]:
        """See `Memory.newest`."""
        return await (await self._records()).newest(collection, scope, limit)

    async def page(self, collection: str, scope: Scope, cursor: str | None, limit: int) -> MemoryPage:
        """See `Memory.page`."""
        return await (await self._records()).page(collection, scope, cursor, limit)

    async def delete(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """See `Memory.delete`."""
        return await (await self._records()).delete(collection, scope, memory_ids)

    async def count(self, collection: str, scope: Scope) -> int:
        """See `Memory.count`."""
        return await (await self._records()).count(collection, scope)

    async def _records(self) -> StoredMemory:
        """For all but searching, which alone needs the embedder: what it lacks keeps nobody from seeing and erasing."""
        return StoredMemory((await self._store()).memories)

    async def _store(self) -> SessionStore:
        try:
            return await self._stores.durable()
        except SidecarError as error:
            raise MemoryUnavailable(error.message) from error

    async def _open(self) -> StoredMemory:
        if self._memory is None:
            memories = (await self._store()).memories
            if self._memory is None:  # still: another search may have waited for the store, too
                self._memory = StoredMemory(memories, embedder=self._found)
                if self._found is not None:
                    self._filling = asyncio.create_task(self._fill(VectorFiller(memories, self._found)))
                    self._due.set()
        return self._memory

    async def _fill(self, filler: VectorFiller) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await filler.fill_all()
            except (EmbedderError, StoreError) as error:
                LOGGER.warning("memory: vectors are missing for now: %s", error)
            except Exception as error:
                log_failure("memory: making vectors", error, new_error_id())
