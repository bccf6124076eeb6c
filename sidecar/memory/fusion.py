"""Reciprocal-rank fusion: several rankings become one score, and age takes its part of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

RANK_CONSTANT: Final = 10
"""How slowly a place in a ranking loses its worth. With the usual 60 the tenth place is worth nearly as much as the
first, and in a scope of some hundred records likeness and age would decide alone."""

ENOUGH: Final = 0.5
"""From this coverage on a place in the full-text ranking counts in full."""

TOO_LITTLE: Final = 0.25
"""Up to this coverage it counts nothing. A question in other words than the answer's shares but a few common ones with
records that have nothing to do with it, and their places would put these before what is meant."""

MOST_AGE: Final = 0.2
"""The most that age takes of a score. What somebody said of themselves a year ago is as true as it was: without a bound
anything new, about whatever it is, would come before it."""

_DAY: Final = 86_400e6


@dataclass(frozen=True, slots=True)
class Weights:
    """What each ranking counts. A ranking that has found nothing takes no part."""

    full_text: float = 1.1
    """A little more, so that what is first by words alone comes before what is first by vectors alone."""
    dense: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """Refs, best first, and what the ranking counts."""

    refs: Sequence[int]
    weight: float = 1.0
    worth: Mapping[int, float] = field(default_factory=dict[int, float])
    """What part of its place's worth each ref has, from 0 to 1; where nothing is said, all of it."""


def fuse(rankings: Sequence[Ranking]) -> dict[int, float]:
    """A score for each ref that any ranking names: 1 for what is first in all of them, never above."""
    taking_part = [ranking for ranking in rankings if ranking.refs and ranking.weight > 0]
    best = sum(_highest(ranking) for ranking in taking_part) or 1.0
    scores: dict[int, float] = {}
    for ranking in taking_part:
        for place, ref in enumerate(ranking.refs, 1):
            scores[ref] = scores.get(ref, 0.0) + _worth(ranking, place, ref) / best
    return scores


def trusted(coverage: Mapping[int, float]) -> dict[int, float]:
    """How much the places of records count that hold such shares of the question's words."""
    slope = 1 / (ENOUGH - TOO_LITTLE)
    return {ref: min(1.0, max(0.0, (share - TOO_LITTLE) * slope)) for ref, share in coverage.items()}


def aged(
    scores: Mapping[int, float], created: Mapping[int, int], now: int, half_life_days: float | None
) -> dict[int, float]:
    """Scores of which age has taken its part, at most `MOST_AGE`; what is dated in the future counts as new.

    Args:
        scores: By ref.
        created: When each was said, in microseconds since 1970.
        now: In the same unit.
        half_life_days: What is this old has lost half of that part; `None` or 0: age does not count.
    """
    if not half_life_days:
        return dict(scores)
    half_lives = {ref: max(0, now - created[ref]) / _DAY / half_life_days for ref in scores}
    return {ref: score * (1 - MOST_AGE * (1 - 0.5 ** half_lives[ref])) for ref, score in scores.items()}


def _worth(ranking: Ranking, place: int, ref: int) -> float:
    return ranking.weight * ranking.worth.get(ref, 1.0) / (RANK_CONSTANT + place)


def _highest(ranking: Ranking) -> float:
    return max(_worth(ranking, place, ref) for place, ref in enumerate(ranking.refs, 1))
