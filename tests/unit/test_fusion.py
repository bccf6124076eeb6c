"""Several rankings become one: by place, by weight, by age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.memory.fusion import MOST_AGE, RANK_CONSTANT, Ranking, aged, fuse, trusted

DAY = 86_400_000_000
rankings = st.lists(
    st.builds(Ranking, st.lists(st.integers(1, 30), unique=True), st.floats(0.1, 5)), min_size=1, max_size=4
)


def order(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda ref: -scores[ref])


def test_what_several_rankings_name_comes_before_what_one_puts_first() -> None:
    scores = fuse([Ranking([1, 2, 3]), Ranking([4, 2, 5])])
    assert order(scores)[0] == 2
    assert set(scores) == {1, 2, 3, 4, 5}


def test_the_heavier_ranking_decides() -> None:
    assert order(fuse([Ranking([1, 2], 3), Ranking([2, 1], 1)])) == [1, 2]
    assert order(fuse([Ranking([1, 2], 1), Ranking([2, 1], 3)])) == [2, 1]
    assert order(fuse([Ranking([1, 2], 1), Ranking([2, 1], 0)])) == [1, 2]


def test_first_everywhere_is_one_and_a_ranking_without_finds_takes_no_part() -> None:
    scores = fuse([Ranking([1, 2]), Ranking([1, 3]), Ranking([])])
    assert scores[1] == pytest.approx(1)
    assert scores[2] == pytest.approx((RANK_CONSTANT + 1) / (RANK_CONSTANT + 2) / 2)
    assert fuse([]) == fuse([Ranking([])]) == {}


@given(rankings)
def test_scores_lie_between_nothing_and_one_and_a_better_place_never_harms(found: list[Ranking]) -> None:
    scores = fuse(found)
    assert set(scores) == {ref for ranking in found for ref in ranking.refs}
    assert all(0 < score <= 1 + 1e-9 for score in scores.values())
    alone = fuse(found[:1])
    assert order(alone) == list(found[0].refs)


def test_what_age_leaves_of_its_part_halves_with_every_half_life() -> None:
    scores = aged(dict.fromkeys(range(1, 5), 1.0), {1: 0, 2: 10 * DAY, 3: 20 * DAY, 4: 99 * DAY}, 20 * DAY, 10)
    assert scores == pytest.approx({1: 1 - MOST_AGE * 3 / 4, 2: 1 - MOST_AGE / 2, 3: 1.0, 4: 1.0})


@given(st.integers(0, 100_000), st.floats(0.1, 1_000))
def test_no_age_buries_what_is_clearly_better(days: int, half_life: float) -> None:
    scores = aged({1: 1.0, 2: 0.5}, {1: 0, 2: days * DAY}, days * DAY, half_life)
    assert order(scores) == [1, 2]


@pytest.mark.parametrize("half_life", [None, 0])
def test_without_a_half_life_age_does_not_count(half_life: float | None) -> None:
    assert aged({1: 0.5}, {1: 0}, 10**18, half_life) == {1: 0.5}


def test_a_place_that_few_of_the_question_s_words_have_brought_about_counts_little() -> None:
    by_meaning = Ranking([2, 1])
    assert order(fuse([Ranking([1, 2], worth=trusted({1: 0.05, 2: 0.04})), by_meaning])) == [2, 1]
    assert order(fuse([Ranking([1, 3], worth=trusted({1: 0.9, 3: 0.1})), by_meaning])) == [1, 2, 3]
    assert trusted({1: 0.5, 2: 1.0, 3: 0.25, 4: 0.0}) == {1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0}


def test_what_is_found_by_too_few_words_alone_is_still_found_last() -> None:
    worthless = Ranking([1], worth=trusted({1: 0.1}))
    assert fuse([worthless, Ranking([2])]) == {1: 0.0, 2: 1.0}
    assert fuse([worthless]) == {1: 0.0}


@given(rankings)
def test_where_no_place_is_worth_all_the_best_is_still_one(found: list[Ranking]) -> None:
    first = found[0].refs[:1]
    scores = fuse([Ranking(first, ranking.weight, dict.fromkeys(first, 0.3)) for ranking in found])
    assert scores == pytest.approx(dict.fromkeys(first, 1.0))
