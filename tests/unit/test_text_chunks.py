"""How a text is cut into chunks: nothing is lost, bounds are kept, and sections stay apart."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.text_chunks import MAX_HEADING, Chunk, chunks

PIECES = st.sampled_from(
    ["word", "longer words here", " ", "\n", "\n\n", "\f", "# Head\n", "\n## Sub # \n", "```\n", "~~~~\n", "End. ",
     "。", "退款政策", "\t", "\u2028", "x" * 40, "#no", "é", "👩‍👩‍👧", "\r"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=300))
SIZES = st.integers(min_value=1, max_value=80).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(min_value=0, max_value=(size - 1) // 2))
)


def texts(text: str, **options: int | bool) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in chunks(text, **options)]


@given(TEXTS, SIZES, st.booleans())
def test_nothing_but_blanks_is_lost_and_every_bound_is_kept(
    text: str, bounds: tuple[int, int], has_headings: bool
) -> None:
    size, overlap = bounds

    found = chunks(text, has_headings=has_headings, size=size, overlap=overlap)

    covered = {place for chunk in found for place in range(chunk.start, chunk.end)}
    assert [text[place] for place in range(len(text)) if place not in covered and not text[place].isspace()] == []
    for chunk in found:
        piece = text[chunk.start : chunk.end]
        assert 0 < len(piece) <= size
        assert piece == piece.strip()
    for one, following in pairwise(found):
        assert one.start < following.start
        assert one.end < following.end
        assert one.end - following.start <= overlap


@given(TEXTS)
def test_the_chunks_of_a_text_are_always_the_same(text: str) -> None:
    assert chunks(text) == chunks(text)


@given(TEXTS)
def test_text_that_fits_into_one_chunk_and_has_one_section_is_one_chunk(text: str) -> None:
    text = text.replace("\f", " ")[:1_000]

    assert texts(text, has_headings=False) == ([text.strip()] if text.strip() else [])


def test_a_section_begins_a_chunk_and_says_what_it_stands_below() -> None:
    text = "Intro.\n\n# Refunds\n\nAsk us.\n\n## Time limits ##\n\n30 days.\n\n# Shipping\n\nFree.\n"

    found = [(text[one.start : one.end].split("\n")[-1], one.headings) for one in chunks(text)]

    assert found == [
        ("Intro.", ()),
        ("Ask us.", ("Refunds",)),
        ("30 days.", ("Refunds", "Time limits")),
        ("Free.", ("Shipping",)),
    ]


def test_headings_with_nothing_below_them_go_with_the_next_section() -> None:
    text = "# Guide\n\n## Part one\n\nText."

    assert chunks(text) == [Chunk(0, len(text), ("Guide", "Part one"))]


def test_a_comment_in_fenced_code_is_no_heading() -> None:
    text = "# Guide\n\n```sh\n# not a heading\n````\n\n# Next\n\nText."

    assert [one.headings for one in chunks(text)] == [("Guide",), ("Next",)]


def test_without_headings_a_hash_is_text() -> None:
    assert chunks("# one\ntwo", has_headings=False) == [Chunk(0, 9)]


def test_a_page_ends_a_chunk() -> None:
    assert texts("page one\fpage two\f\fpage four", has_headings=False) == ["page one", "page two", "page four"]


def test_paragraphs_are_kept_whole_where_they_fit() -> None:
    text = "\n\n".join(["a" * 30, "b" * 30, "c" * 30])

    assert texts(text, size=70, overlap=0) == [f"{'a' * 30}\n\n{'b' * 30}", "c" * 30]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param("One sentence here. Another one follows now and here", "One sentence here.", id="sentence"),
        pytest.param("第一句话在这里说完了。第二句话在这里也说完了吗", "第一句话在这里说完了。", id="Chinese"),
        pytest.param("many words without any end " * 3, "many words without", id="word"),
        pytest.param("x" * 100, "x" * 20, id="anywhere"),
    ],
)
def test_a_paragraph_that_is_too_long_is_cut_where_it_hurts_least(text: str, first: str) -> None:
    assert texts(text, size=20, overlap=0)[0] == first


def test_a_chunk_repeats_the_end_of_the_one_before_it_from_a_word_on() -> None:
    found = texts(" ".join(f"word{number}" for number in range(40)), size=60, overlap=20)

    for one, following in pairwise(found):
        repeated = following.split()[0]
        assert repeated in one.split()


def test_a_section_repeats_nothing_of_the_one_before_it() -> None:
    assert texts("# A\n\nfirst section\n\n# B\n\nsecond section", size=60, overlap=20)[1] == "# B\n\nsecond section"


def test_a_heading_of_any_length_is_cut_in_the_place() -> None:
    [only] = chunks(f"# {'x' * 500}\n\ntext")

    assert only.headings == ("x" * MAX_HEADING,)


@pytest.mark.parametrize(("size", "overlap"), [(10, 5), (10, -1), (0, 0)])
def test_an_overlap_of_half_a_chunk_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="overlap"):
        chunks("text", size=size, overlap=overlap)
