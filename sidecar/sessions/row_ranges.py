"""Rows that are kept once, and lists of them as ranges: `0 1 2 5` is `(0, 3), (5, 6)`. Looks into no row."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

Ranges = tuple[tuple[int, int], ...]
"""Rows of a table: from, and up to but without."""


class Table(Generic[T]):
    """Rows, each kept once."""

    def __init__(self) -> None:
        self.rows: list[T] = []
        self._places: dict[Hashable, int] = {}

    def find(self, key: Hashable) -> int | None:
        """The place of a row that is there."""
        return self._places.get(key)

    def put(self, key: Hashable, make: Callable[[], T]) -> int:
        """The place of a row, made now if it is not there."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.rows)
            self.rows.append(make())
        return place


def ranges_of(rows: Iterable[int], behind: Ranges = ()) -> Ranges:
    """These rows as ranges, behind others."""
    found = list(behind)
    for row in rows:
        if found and found[-1][1] == row:
            found[-1] = (found[-1][0], row + 1)
        else:
            found.append((row, row + 1))
    return tuple(found)


def rows_of(ranges: Ranges) -> Iterator[int]:
    """The rows, one by one."""
    for first, end in ranges:
        yield from range(first, end)
