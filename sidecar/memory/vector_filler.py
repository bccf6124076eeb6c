"""Gives stored records their vectors, after the fact and over restarts. It searches nothing and is woken by others."""

from collections.abc import Callable
from typing import Final

from providers.api.memory import Embedder
from sidecar.stores.memories import Memories
from sidecar.stores.memory_rows import Pending

BATCH: Final = 64
"""How many texts are embedded at once."""

OnProgress = Callable[[int, int], None]
"""How many of the pending records have been dealt with, and how many there were."""

_FLOAT: Final = 4


class VectorFiller:
    """Embeds what has no vector yet. What is interrupted goes on where it was; nothing is embedded twice for long."""

    def __init__(self, memories: Memories, embedder: Embedder, *, with_context: bool = False) -> None:
        """Belong to one embedder.

        Args:
            memories: Where the records are.
            embedder: Whose vectors they get.
            with_context: Whether a record's neighbours are embedded with it.
        """
        self._memories = memories
        self._embedder = embedder
        self._with_context = with_context

    async def fill(self, collection: str, on_progress: OnProgress | None = None) -> int:
        """Embed all that is pending in a collection; returns how many vectors were written.

        Raises:
            EmbedderError: it cannot be done now; what was done is kept.
            OtherModel: the collection has another embedder's vectors.
            StoreError: the store cannot be read or written now.
        """
        total = await self._pending_in(collection) if on_progress is not None else 0
        filled = seen = after = 0
        while batch := await self._memories.pending(collection, after, BATCH):
            vectors = await self._embedder.embed([self._text(one) for one in batch], role="passage")
            await self._memories.use_embedder(collection, self._embedder.name, len(vectors[0]) // _FLOAT)
            pairs = [(one.ref, vector) for one, vector in zip(batch, vectors, strict=True)]
            filled += await self._memories.fill(collection, self._embedder.name, pairs)
            seen, after = seen + len(batch), batch[-1].ref
            if on_progress is not None:
                on_progress(seen, max(seen, total))
        return filled

    async def fill_all(self) -> int:
        """Embed what is pending in every collection, as after a restart.

        Raises:
            EmbedderError, OtherModel, StoreError: as `fill` does.
        """
        waiting = [info.name for info in await self._memories.collections() if info.pending]
        return sum([await self.fill(name) for name in waiting])

    async def embed_anew(self, collection: str, on_progress: OnProgress | None = None) -> int:
        """Drop a collection's vectors, whosever they were, and make them again.

        Raises:
            EmbedderError, StoreError: as `fill` does.
        """
        await self._memories.drop_vectors(collection)
        return await self.fill(collection, on_progress)

    async def _pending_in(self, collection: str) -> int:
        return sum(info.pending for info in await self._memories.collections() if info.name == collection)

    def _text(self, one: Pending) -> str:
        return f"{one.context}\n{one.text}" if self._with_context and one.context else one.text
