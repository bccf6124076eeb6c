"""The port of long-term memory in a store: what every store promises of it; no store's own code.

Records are written with a unit (`Unit.memory`). Everything else is here. Every read and every deletion names exactly
one scope, and a scope that says nothing is refused: there is no way to ask for everybody's.
"""

from collections.abc import Sequence
from typing import Protocol

from providers.api.memory import Scope, Vector

from .base import Page, StoreError
from .memory_rows import CollectionInfo, Found, MemoryFilter, MemoryRow, Pending, QueryVector


class OtherModel(StoreError):
    """The vectors of a collection are another embedder's: they cannot be compared."""

    def __init__(self, collection: str, stored: str, stored_dimension: int, given: str, dimension: int) -> None:
        super().__init__(
            f"memory {collection!r} has vectors of {stored!r} ({stored_dimension} numbers), not of {given!r}"
            f" ({dimension}); embed it anew: agent-sidecar memory embed --collection {collection}"
        )
        self.collection, self.stored, self.given = collection, stored, given


class Memories(Protocol):
    """Records of all collections. Every method raises `StoreError` kinds only; `Refused` for an empty scope."""

    async def find(self, where: MemoryFilter, text: str, vector: QueryVector | None, limit: int) -> Found:
        """The `limit` best by full text and, with a vector, the `limit` nearest; both at one instant.

        A text without words has no matches. The scan for the nearest is exact, and needs numpy: without it there are
        none.

        Raises:
            OtherModel: the collection's vectors are another embedder's.
        """
        ...

    async def newest(self, where: MemoryFilter, limit: int) -> Sequence[MemoryRow]:
        """The newest records, newest first."""
        ...

    async def page(self, where: MemoryFilter, cursor: str | None, limit: int) -> Page[MemoryRow]:
        """A page of records, newest first, by key and not by offset; at least one, if there is one.

        Raises:
            ValueError: the cursor is malformed.
        """
        ...

    async def count(self, where: MemoryFilter) -> int:
        """How many records there are."""
        ...

    async def forget(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """Erase records (`None`: all that the scope has now); returns how many there were.

        On return nothing finds them any more, and their text, words and vectors are overwritten in the store's files;
        where another process was reading meanwhile, the files follow when the next erasure or last close is done.
        """
        ...

    async def collections(self) -> Sequence[CollectionInfo]:
        """All collections, by name."""
        ...

    async def use_embedder(self, collection: str, embedder: str, dimension: int) -> None:
        """Say whose vectors a collection gets; the first one to say it decides.

        Raises:
            OtherModel: the collection has another embedder's, or of another dimension.
        """
        ...

    async def pending(self, collection: str, after: int, limit: int) -> Sequence[Pending]:
        """Records without a vector whose ref is above `after`, by ref."""
        ...

    async def fill(self, collection: str, embedder: str, vectors: Sequence[tuple[int, Vector]]) -> int:
        """Give records their vectors, by ref; returns how many took one.

        A record that was erased or replaced meanwhile, or has a vector, takes none.

        Raises:
            OtherModel: the collection has another embedder's vectors, or none was named yet.
            Refused: a vector has another dimension.
        """
        ...

    async def drop_vectors(self, collection: str) -> None:
        """Forget the vectors and whose they were, so that another embedder's can take their place."""
        ...
