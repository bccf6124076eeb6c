"""From scored records to hits: the same is one hit, the newer version comes first, replies leave room. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidecar.stores.memory_rows import MemoryRow
from sidecar.stores.memory_rules import instant

from .likeness import Likeness

REPLIES: Final = 0.5
"""The largest share of hits that are an assistant's, while others match as well."""

_REPLY: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Group:
    """Records that say the same."""

    row: MemoryRow
    """The newest of them: it stands for all."""
    score: float
    """The best of theirs."""
    count: int = 1

    @property
    def is_reply(self) -> bool:
        """Whether a model said it."""
        return self.row.write.role == _REPLY


def folded(rows: Mapping[int, MemoryRow], scores: Mapping[int, float], likeness: Likeness) -> list[Group]:
    """Fold what says the same; best first, of equals the newer."""
    best_first = sorted(scores, key=lambda ref: (-scores[ref], -instant(rows[ref].write.created_at), -ref))
    groups: list[list[int]] = []
    for ref in best_first:
        for group in groups:
            if likeness.is_same(ref, group[0]):
                group.append(ref)
                break
        else:
            groups.append([ref])
    return [Group(_newest(rows[ref] for ref in group), scores[group[0]], len(group)) for group in groups]


def replies_allowed(limit: int) -> int:
    """How many of so many hits may be replies."""
    return max(1, int(limit * REPLIES))


def select(groups: Sequence[Group], limit: int, diversity: float, likeness: Likeness) -> list[Group]:
    """The best groups, best first.

    Where several are versions of one thing ("I live in Oslo", "Now I live in Lisbon"), the newest of them has the best
    one's place. So a fact that has changed is found as it is now, and nothing old is worse off for what was said later
    of other things. What a model said of many things has one form, and stays where it is.

    Args:
        groups: Best first.
        limit: The most that are wanted.
        diversity: From 0, by score alone, to 1: what resembles a better hit counts less (maximal marginal relevance).
        likeness: Of all that are in the groups.
    """
    chosen: list[Group] = []
    replies = replies_allowed(limit)
    left, replies_left = [g for g in groups if not g.is_reply], [g for g in groups if g.is_reply]
    while len(chosen) < limit and (left or replies_left):
        room = replies > 0 or not left
        best = _best([*left, *(replies_left if room else ())], chosen, diversity, likeness)
        (replies_left if best.is_reply else left).remove(best)
        replies -= best.is_reply
        chosen.append(best if best.is_reply else _newest_version(best, left, likeness))
    return sorted(chosen, key=lambda group: -group.score)


def _best(groups: Sequence[Group], chosen: Sequence[Group], diversity: float, likeness: Likeness) -> Group:
    def worth(group: Group) -> float:
        if not diversity or not chosen:
            return group.score
        nearest = max(likeness.of(group.row.ref, other.row.ref) for other in chosen)
        return (1 - diversity) * group.score - diversity * nearest

    return max(groups, key=worth)


def _newest_version(best: Group, left: list[Group], likeness: Likeness) -> Group:
    """The newest version of the best group, in its place; the best one then waits in the newer one's."""
    versions = [group for group in left if likeness.is_close(best.row.ref, group.row.ref)]
    newest = max((best, *versions), key=lambda group: instant(group.row.write.created_at))
    if newest is best:
        return best
    left[left.index(newest)] = replace(best, score=newest.score)
    return replace(newest, score=best.score)


def _newest(rows: Iterable[MemoryRow]) -> MemoryRow:
    return max(rows, key=lambda row: (instant(row.write.created_at), row.ref))
