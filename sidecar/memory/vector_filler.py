"""Gives stored records their vectors, after the fact and over restarts. It searches nothing and is woken by others."""

from collections.abc import Callable, Sequence
from typing import Final

from providers.api.memory import Embedder, EmbedderError, Vector
from sidecar.stores.memories import Memories
from sidecar.stores.memory_rows import Pending

BATCH: Final = 64
"""How many texts are embedded at once."""

MOST_FAILURES: Final = 3
"""Texts in a row that cannot be embedded by themselves: then it is the embedder's fault."""

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
            pairs = await self._embedded(batch)
            if pairs:
                await self._memories.use_embedder(collection, self._embedder.name, len(pairs[0][1]) // _FLOAT)
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

    async def _embedded(self, batch: Sequence[Pending]) -> list[tuple[int, Vector]]:
        """The vectors of a batch. A text that cannot be embedded is left without one, and keeps no other from its own.

        Raises:
            EmbedderError: it is not the texts: several in a row fail by themselves too.
        """
        try:
            vectors = await self._embedder.embed([self._text(one) for one in batch], role="passage")
        except EmbedderError as error:
            if len(batch) == 1:
                raise
            return await self._one_by_one(batch, error)
        return [(one.ref, vector) for one, vector in zip(batch, vectors, strict=True)]

    async def _one_by_one(self, batch: Sequence[Pending], error: EmbedderError) -> list[tuple[int, Vector]]:
        found: list[tuple[int, Vector]] = []
        failures = 0
        for one in batch:
            try:
                (vector,) = await self._embedder.embed([self._text(one)], role="passage")
            except EmbedderError:
                failures += 1
                if failures == MOST_FAILURES:
                    raise error from None
            else:
                failures = 0
                found.append((one.ref, vector))
        return found

    async def _pending_in(self, collection: str) -> int:
        return sum(info.pending for info in await self._memories.collections() if info.name == collection)

    def _text(self, one: Pending) -> str:
        return f"{one.context}\n{one.text}" if self._with_context and one.context else one.text
