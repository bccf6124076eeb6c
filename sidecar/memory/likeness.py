"""How much two records say the same: by their words, and by their vectors where both have one. Pure.

Numbers and negations outweigh any likeness: "two dishes" and "three dishes", or "I eat meat" and "I don't eat meat",
never say the same.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from providers.text_words import terms
from sidecar.stores.memory_rows import MemoryRow
from sidecar.stores.nearest import is_available

T = TypeVar("T")

CLOSE: Final = 0.5
"""Share of common terms from which on one text may be another version of the other."""

_ENGLISH: Final = ("no", "not", "never", "cannot", "without", "nor", "none", "cant", "dont", "wont", "isnt", "t")
"""The last one is what is left of `n't`."""
_OTHERS: Final = ("nicht", "kein", "keine", "nie", "pas", "jamais", "sans", "sin", "nunca", "non", "senza", "nao")
_NEGATIONS: Final = frozenset(_ENGLISH) | frozenset(_OTHERS)
_DIGIT: Final = re.compile(r"\d")
_NEGATING_CHARACTERS: Final = frozenset("不没沒别別无無非未莫勿")


@dataclass(frozen=True, slots=True)
class SameIf:
    """When two records of one role say the same."""

    overlap: float = 0.85
    """Share of common terms, at least; of short texts only equal ones."""
    cosine: float = 0.97
    """Of their vectors, at least."""
    shortest: int = 4
    """Texts with fewer terms are short."""


@dataclass(frozen=True, slots=True)
class _Said:
    role: str | None
    words: tuple[str, ...]
    """In order, without what is no word."""
    terms: frozenset[str]
    decisive: frozenset[str]


class Likeness:
    """Compares the records of one search, by ref."""

    def __init__(self, rows: Iterable[MemoryRow], same_if: SameIf) -> None:
        """Take their texts apart and multiply their vectors, once."""
        found = list(rows)
        self._same_if = same_if
        self._said = {row.ref: _said(row) for row in found}
        self._cosines = _cosines(found)

    def is_same(self, one: int, other: int) -> bool:
        """Whether two records say the same, so that the newer can stand for both."""
        a, b = self._said[one], self._said[other]
        if a.role != b.role:
            return False
        if a.words == b.words:
            return True
        limits = self._same_if
        if a.decisive != b.decisive or min(len(a.terms), len(b.terms)) < limits.shortest:
            return False
        return _overlap(a, b) >= limits.overlap or self._cosine(one, other, 0.0) >= limits.cosine

    def is_close(self, one: int, other: int) -> bool:
        """Whether two records may be versions of one thing, though a number, a name or a negation is another."""
        a, b = self._said[one], self._said[other]
        return a.role == b.role and _overlap(a, b) >= CLOSE

    def of(self, one: int, other: int) -> float:
        """From 0, nothing in common, to 1."""
        cosine = self._cosine(one, other, None)
        return _overlap(self._said[one], self._said[other]) if cosine is None else max(0.0, cosine)

    def _cosine(self, one: int, other: int, otherwise: T) -> float | T:
        places, table = self._cosines
        if one not in places or other not in places:
            return otherwise
        return table[places[one]][places[other]]


def _said(row: MemoryRow) -> _Said:
    text = row.write.text
    found = terms(text)
    decisive = _NEGATIONS.intersection(found) | _NEGATING_CHARACTERS.intersection(text)
    if _DIGIT.search(text) is not None:
        decisive |= {term for term in found if _DIGIT.search(term) is not None}
    return _Said(row.write.role, tuple(found) or (text,), frozenset(found), decisive)


def _cosines(rows: Sequence[MemoryRow]) -> tuple[dict[int, int], list[list[float]]]:
    """Where each record with a vector stands in the table of products, and the table."""
    filled = [(row.ref, row.vector) for row in rows if row.vector is not None]
    if not filled or not is_available():
        return {}, []
    import numpy as np

    joined = np.frombuffer(b"".join([vector for _, vector in filled]), dtype="<f4").reshape(len(filled), -1)
    table: list[list[float]] = np.einsum("id,jd->ij", joined, joined).tolist()
    return {ref: place for place, (ref, _) in enumerate(filled)}, table


def _overlap(a: _Said, b: _Said) -> float:
    common = len(a.terms & b.terms)
    return common / (len(a.terms) + len(b.terms) - common) if common else 0.0
