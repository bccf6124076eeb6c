"""Exact nearest neighbours over unit vectors, and a bounded cache of the matrices of large scopes. It knows no tables.

Everything here needs numpy, which is imported at first use, on the thread that asks. Products are made by `einsum`, on
one thread: a matrix product starts threads that spin, and beside a busy neighbour that is many times slower.
"""

import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from providers.api.memory import Scope, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS: Final = 4_096
"""How many rows are multiplied at once: they fit a processor's cache."""
_MOST_BLOCKS: Final = 64


@cache
def is_available() -> bool:
    """Whether numpy is installed."""
    return importlib.util.find_spec("numpy") is not None


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows' vectors, and their refs."""

    refs: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class Matrix:
    """All vectors of a scope, as they were at one instant."""

    blocks: tuple[Block, ...]
    erased: int
    """The collection's count of erasures then: with another one the matrix is worthless."""
    last: int
    """The last vector's number: those with higher ones are to be added."""

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(block.vectors.nbytes + block.refs.nbytes for block in self.blocks)


def blocks(rows: Iterable[tuple[int, Vector]]) -> Iterator[Block]:
    """Put rows of refs and vectors together. Rows whose vector is not as long as the first one's are a fault."""
    import numpy as np

    left = iter(rows)
    while piece := list(islice(left, _ROWS)):
        joined = np.frombuffer(b"".join([vector for _, vector in piece]), dtype="<f4")
        yield Block(np.array([ref for ref, _ in piece], dtype=np.int64), joined.reshape(len(piece), -1))


def nearest(
    found: Iterable[Block], query: Vector, limit: int, only: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """The refs with the largest dot product, best first, with it; of equals the newer ref.

    Args:
        found: Where to look.
        query: A vector of the same dimension.
        limit: The most that are wanted.
        only: The refs that count; default: all.
    """
    import numpy as np

    wanted = np.frombuffer(query, dtype="<f4")
    allowed = None if only is None else np.fromiter(only, dtype=np.int64, count=len(only))
    best: list[tuple[float, int]] = []
    for block in found:
        products = np.einsum("id,d->i", block.vectors, wanted)
        refs = block.refs
        if allowed is not None:
            counts = np.isin(refs, allowed)
            products, refs = products[counts], refs[counts]
        if len(products) > limit:
            top = np.argpartition(products, -limit)[-limit:]
            products, refs = products[top], refs[top]
        best += zip(products.tolist(), refs.tolist(), strict=True)
        best = sorted(best, reverse=True)[:limit]
    return [(ref, product) for product, ref in best]


class Matrices:
    """The most recently used matrices of large scopes, up to a number of bytes. Any thread may use it."""

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        """Start empty; a matrix that does not fit by itself is not kept."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, Scope], Matrix] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: tuple[str, Scope], erased: int, last: int) -> Matrix | None:
        """What is kept of a scope, if it is not of another time than the reader's: rows may be missing in it."""
        with self._guard:
            found = self._kept.get(key)
            if found is None or found.erased != erased or found.last > last:
                return None
            self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[str, Scope], matrix: Matrix) -> None:
        """Keep a matrix, unless a newer one is there, and drop what was not used for longest."""
        with self._guard:
            known = self._kept.get(key)
            if known is not None and (known.erased, known.last) > (matrix.erased, matrix.last):
                return
            self._kept[key] = matrix
            self._kept.move_to_end(key)
            while sum(kept.size for kept in self._kept.values()) > self._max_bytes:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep nothing."""
        with self._guard:
            self._kept.clear()


def extended(known: Matrix | None, more: Sequence[Block], erased: int, last: int) -> Matrix:
    """A matrix with further blocks; many small ones become one."""
    import numpy as np

    old = () if known is None else known.blocks
    joined = (*old, *more)
    if known is not None and len(joined) > _MOST_BLOCKS + len(joined[0].refs) // _ROWS:
        refs = np.concatenate([block.refs for block in joined])
        joined = (Block(refs, np.concatenate([block.vectors for block in joined])),)
    return Matrix(joined, erased, last)
