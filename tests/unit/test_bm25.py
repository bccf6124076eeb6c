"""BM25 over one scope: words of one's own before words of neighbours, rare words before common ones."""

from sidecar.stores.bm25 import Hits, rank

SAID, SHORT_REPLY, OTHER = 1, 2, 3


def hits(text: set[int], context: set[int] | None = None) -> Hits:
    """A term that stands in these texts, and in the neighbours of those."""
    return Hits(text | (context or set()), text)


def test_a_short_answer_does_not_rank_before_what_it_answers() -> None:
    """`Noted.` has the question's words as its neighbours, and a short record's words count more."""
    lengths = {SAID: 20, SHORT_REPLY: 1, OTHER: 8}

    ranked = rank(lengths, [hits({SAID}, {SHORT_REPLY}), hits({SAID}, {SHORT_REPLY})], 10)

    assert list(ranked) == [SAID, SHORT_REPLY]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    lengths = dict.fromkeys([SAID, SHORT_REPLY, OTHER], 5)

    assert next(iter(rank(lengths, [hits({OTHER, SHORT_REPLY}), hits({SAID})], 10))) == SAID


def test_of_equals_the_newer_is_first_and_only_so_many_come() -> None:
    assert rank({SAID: 5, OTHER: 5}, [hits({SAID, OTHER})], 1) == {OTHER: 1.0}


def test_where_nothing_stands_nothing_is_found() -> None:
    assert rank({}, [hits({SAID})], 10) == {}
    assert rank({SAID: 0}, [], 10) == {}


def test_what_a_record_covers_of_the_question_is_told_and_rare_words_count_more() -> None:
    lengths = dict.fromkeys(range(1, 11), 5)
    rare, common, nowhere = hits({1}, {2}), hits(set(range(3, 11))), hits(set())

    covered = rank(lengths, [rare, common, nowhere], 10)

    assert rank(lengths, [rare], 1) == {1: 1.0}
    assert 0 < covered[3] < covered[2] < covered[1] < 1
