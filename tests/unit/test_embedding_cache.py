"""The cache of vectors, and what texts and vectors are made fit for: pure parts of the embedders."""

import math
import struct
from collections.abc import Sequence
from typing import Literal

import pytest

from providers.api.memory import EmbedderError, Vector
from sidecar.models.embedders.cache import CachedEmbedder, VectorCache
from sidecar.models.embedders.texts import batches, from_first_visible, prepared
from sidecar.models.embedders.vectors import dimension, unit_vector


class Counting:
    """An embedder whose vectors are the texts' own bytes, and that remembers what it was asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[tuple[str, str]] = []

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        self.asked += [(role, text) for text in texts]
        if "bad" in texts:
            raise EmbedderError("bad")
        return [f"{self.name}/{role}/{text}".encode("utf-8", "surrogatepass") for text in texts]


async def test_a_text_is_embedded_once_and_keeps_its_place() -> None:
    counting = Counting()
    embedder = CachedEmbedder(counting, VectorCache())

    first = await embedder.embed(["a", "b", "a"], role="passage")
    second = await embedder.embed(["c", "b"], role="passage")

    assert first == [b"counting/passage/a", b"counting/passage/b", b"counting/passage/a"]
    assert second == [b"counting/passage/c", b"counting/passage/b"]
    assert counting.asked == [("passage", "a"), ("passage", "b"), ("passage", "c")]
    assert await embedder.embed([], role="query") == []


async def test_roles_and_embedders_do_not_share_vectors() -> None:
    cache = VectorCache()
    one, other = CachedEmbedder(Counting("one"), cache), CachedEmbedder(Counting("other"), cache)

    found = [
        (await embedder.embed(["same"], role=role))[0] for embedder in (one, other) for role in ("query", "passage")
    ]

    assert found == [b"one/query/same", b"one/passage/same", b"other/query/same", b"other/passage/same"]


async def test_what_failed_is_not_remembered() -> None:
    counting = Counting()
    embedder = CachedEmbedder(counting, VectorCache())

    for _ in range(2):
        with pytest.raises(EmbedderError):
            await embedder.embed(["bad"], role="query")

    assert len(counting.asked) == 2


async def test_half_a_surrogate_pair_is_a_key_like_any_other() -> None:
    counting = Counting()
    embedder = CachedEmbedder(counting, VectorCache())

    assert await embedder.embed(["\ud800"], role="query") == await embedder.embed(["\ud800"], role="query")
    assert len(counting.asked) == 1


def test_the_cache_forgets_what_was_not_asked_for_the_longest() -> None:
    cache = VectorCache(max_bytes=3 * (100 + 200))
    for text in "abc":
        cache.put("e", "query", text, bytes(100))
    assert cache.get("e", "query", "a") is not None

    cache.put("e", "query", "d", bytes(100))

    assert [text for text in "abcd" if cache.get("e", "query", text)] == ["a", "c", "d"]


def test_a_vector_that_is_put_again_takes_its_room_once() -> None:
    cache = VectorCache(max_bytes=2 * (100 + 200))
    for _ in range(5):
        cache.put("e", "query", "a", bytes(100))
    cache.put("e", "query", "b", bytes(100))

    assert cache.get("e", "query", "a") is not None


def test_a_vector_that_alone_is_too_large_is_not_kept() -> None:
    cache = VectorCache(max_bytes=1000)

    cache.put("e", "query", "a", bytes(2000))

    assert cache.get("e", "query", "a") is None


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b", "\ufeff \u2060", "\0"])
def test_text_that_shows_nothing_is_blank_and_refused(text: str) -> None:
    assert from_first_visible(text) == ""
    with pytest.raises(EmbedderError, match="blank"):
        prepared(["fine", text], 100)


@pytest.mark.parametrize("text", ["a", " 辣 ", "\u200b.", "👩\u200d🚀"])
def test_text_that_shows_something_is_not_blank(text: str) -> None:
    assert from_first_visible(text)
    assert prepared([text], 100)


def test_texts_are_mended_and_cut_between_characters() -> None:
    assert prepared(["a\0b", "x\ud800", "\ud83d\ude00", "辣辣辣", "short"], 7) == [
        "a\ufffdb", "x\ufffd", "😀", "辣辣", "short",
    ]  # fmt: skip


@pytest.mark.parametrize("blanks", [" ", "\n", "\u200b", "\ufeff \0"])
def test_blanks_at_the_begin_do_not_take_the_room_of_words(blanks: str) -> None:
    assert prepared([blanks * 100 + "words and more"], 7) == ["words a"]


def test_batches_keep_order_and_both_bounds() -> None:
    texts = ["aa", "bb", "cc", "d" * 9, "e", "f", "g", "h"]

    assert list(batches(texts, 3, 6)) == [["aa", "bb", "cc"], ["d" * 9], ["e", "f", "g"], ["h"]]
    assert list(batches([], 3, 6)) == []


def test_a_vector_has_unit_length_in_little_endian_floats() -> None:
    vector = unit_vector([3, 0, -4])

    assert struct.unpack("<3f", vector) == pytest.approx((0.6, 0.0, -0.8))
    assert dimension(vector) == 3


def test_a_huge_vector_does_not_overflow() -> None:
    assert struct.unpack("<2f", unit_vector([1e300, 1e300])) == pytest.approx((math.sqrt(0.5),) * 2)


@pytest.mark.parametrize("numbers", [[], [0, 0], [float("nan"), 1], [float("inf")], ["1x"], [None], [10**400]])
def test_numbers_without_a_direction_are_no_vector(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="vector"):
        unit_vector(numbers)
