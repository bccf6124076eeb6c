"""BM25 over one scope's records: how rare a word is counts within the scope, never across scopes. Pure.

So a record's rank tells nothing of what others have said. How often a word stands in a record does not count: records
are short.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

CONTEXT: Final = 0.5
"""What a word in a record's neighbours counts, against one in its own text."""

_K1: Final = 1.2
_B: Final = 0.75


@dataclass(frozen=True, slots=True)
class Hits:
    """Where one term stands."""

    anywhere: AbstractSet[int]
    text: AbstractSet[int]
    """Those of them that have it in their own text."""


def rank(lengths: Mapping[int, int], terms: Sequence[Hits], limit: int) -> dict[int, float]:
    """The records that hold any of the terms, best first; of equals the newer ref.

    Each with its coverage: what share of the terms it holds, a rare one counting more; 1 is all of them.

    Args:
        lengths: Every record of the scope, and its length in words.
        terms: Where each term stands; records outside the scope do not count.
        limit: The most that are wanted.
    """
    mean = sum(lengths.values()) / len(lengths) or 1.0 if lengths else 1.0
    scores: dict[int, float] = {}
    covered: dict[int, float] = {}
    asked = 0.0
    for hits in terms:
        found = hits.anywhere & lengths.keys()
        rarity = math.log(1 + (len(lengths) - len(found) + 0.5) / (len(found) + 0.5))
        asked += rarity
        for ref in found:
            is_own = ref in hits.text
            share = rarity * (1.0 if is_own else CONTEXT)
            # A short answer to a long question holds none of its words: its shortness must not make up for that.
            length = lengths[ref] if is_own else max(lengths[ref], mean)
            worth = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * length / mean))
            scores[ref] = scores.get(ref, 0.0) + share * worth
            covered[ref] = covered.get(ref, 0.0) + share
    best = sorted(scores, key=lambda ref: (-scores[ref], -ref))[:limit]
    return {ref: covered[ref] / asked for ref in best}
