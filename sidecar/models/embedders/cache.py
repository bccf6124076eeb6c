"""Remembers vectors by what they were made of, so that a text is embedded once. In memory, and bounded."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Literal

from providers.api.memory import Embedder, Vector

CACHE_BYTES: Final = 16 * 1024 * 1024
"""About 9,000 vectors of 384 numbers."""

_OVERHEAD: Final = 200
"""Bytes that an entry takes besides its vector, roughly."""

Role = Literal["query", "passage"]
_Key = tuple[str, Role, bytes]


class VectorCache:
    """The vectors that were asked for last, up to a number of bytes."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._vectors: OrderedDict[_Key, Vector] = OrderedDict()

    def get(self, embedder: str, role: Role, text: str) -> Vector | None:
        """The vector that the embedder of this name gave for the text in this role, if it is remembered."""
        key = _key(embedder, role, text)
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, embedder: str, role: Role, text: str, vector: Vector) -> None:
        """Remember a vector, and forget those that were not asked for the longest."""
        key = _key(embedder, role, text)
        replaced = self._vectors.pop(key, None)
        self._size += _weight(vector) - (_weight(replaced) if replaced is not None else 0)
        self._vectors[key] = vector
        while self._size > self._max_bytes:
            _, forgotten = self._vectors.popitem(last=False)
            self._size -= _weight(forgotten)


class CachedEmbedder:
    """An embedder that asks another one only for what is not remembered, and once for texts that are the same."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache

    @property
    def name(self) -> str:
        """As the embedder's."""
        return self._embedder.name

    async def embed(self, texts: Sequence[str], *, role: Role) -> Sequence[Vector]:
        """One vector a text, in order.

        Raises:
            EmbedderError: the embedder's.
        """
        found = {text: self._cache.get(self.name, role, text) for text in texts}
        missing = [text for text, vector in found.items() if vector is None]
        made = await self._embedder.embed(missing, role=role) if missing else ()
        for text, vector in zip(missing, made, strict=True):
            found[text] = vector
            self._cache.put(self.name, role, text, vector)
        return [vector for text in texts if (vector := found[text]) is not None]


def _key(embedder: str, role: Role, text: str) -> _Key:
    return embedder, role, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _weight(vector: Vector) -> int:
    return len(vector) + _OVERHEAD
