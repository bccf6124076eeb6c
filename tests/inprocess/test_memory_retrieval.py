"""What a provider gets when it searches: one order of words and vectors, no repeats, room for what users have said."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from providers.api.memory import MemoryHit, MemoryQuery, MemoryRecord, MemoryUnavailable, Scope, ScopeRefused
from sidecar.memory.fusion import MOST_AGE, Weights
from sidecar.memory.records import record_of, write_of
from sidecar.memory.retrieval import StoredMemory
from sidecar.stores.base import SessionStore
from sidecar.stores.memory_rows import MemoryRow

from .memory_cases import ALICE, BOB, MadeUpEmbedder, fill, remember, said
from .store_cases import Place


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    place = Place(request.param, tmp_path)
    yield await place.open()
    await place.close()


@pytest.fixture
def memory(store: SessionStore) -> StoredMemory:
    return StoredMemory(store.memories, now=lambda: datetime(2026, 3, 1, 12, tzinfo=UTC))


def query(text: str, **fields: Any) -> MemoryQuery:
    return replace(MemoryQuery("memory", ALICE, text), **fields)


def shown(hits: Sequence[MemoryHit]) -> list[tuple[str, int]]:
    return [(hit.record.text, hit.count) for hit in hits]


async def test_a_record_comes_back_as_it_was_given(store: SessionStore, memory: StoredMemory) -> None:
    record = MemoryRecord(
        "m",
        "memory",
        ALICE,
        "the harbour",
        "2026-03-01T00:00:00Z",
        "user",
        "Alice",
        "msg",
        "s",
        "near",
        {"a": [1, "é"]},
    )
    await remember(store, write_of(record))
    (hit,) = await memory.search(query("harbour"))
    assert (hit.record, hit.score, hit.count) == (record, pytest.approx(1), 1)
    bare = MemoryRecord("m", "memory", ALICE, "text", "2026-03-01T00:00:00Z")
    assert record_of(MemoryRow(1, write_of(bare))) == bare


async def test_words_and_vectors_together_find_what_either_would_miss(store: SessionStore) -> None:
    await remember(store, said("1", "gamma alpha beta"), said("2", "zeta"), said("3", "alpha beta"))
    await fill(store)
    embedder = MadeUpEmbedder()
    memory = StoredMemory(store.memories, embedder=embedder)
    hits = await memory.search(query("alpha beta gamma", limit=5))
    assert [hit.record.memory_id for hit in hits] == ["1", "3", "2"]
    assert embedder.asked == [("query", "alpha beta gamma")]
    only_words = StoredMemory(store.memories, embedder=embedder, weights=Weights(dense=0))
    assert len(await only_words.search(query("alpha", limit=5))) == 2


async def test_five_orders_that_say_the_same_are_one_memory_and_a_count(
    store: SessionStore, memory: StoredMemory
) -> None:
    orders = [said(f"{n}", "Please help me order some takeaway food tonight", second=n, role="user") for n in range(4)]
    orders.append(said("4", "please help me order some takeaway FOOD tonight!", second=4, role="user"))
    await remember(store, *orders, said("self", "About food: I cannot eat anything spicy", second=0, role="user"))
    hits = await memory.search(query("order takeaway food"))
    assert shown(hits) == [
        ("please help me order some takeaway FOOD tonight!", 5),
        ("About food: I cannot eat anything spicy", 1),
    ]


async def test_hundreds_of_repeats_do_not_crowd_out_what_was_said_once(
    store: SessionStore, memory: StoredMemory
) -> None:
    await remember(store, *(said(f"{n}", "order takeaway food", second=n, role="user") for n in range(300)))
    await remember(
        store, said("self", "takeaway must never contain nuts, I told you in the long talk we had", role="user")
    )
    assert shown(await memory.search(query("order takeaway food")))[1:] == [
        ("takeaway must never contain nuts, I told you in the long talk we had", 1)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I would like to have two dishes for dinner", "I would like to have 2 dishes for dinner"),
        ("I do eat meat on most days of the week", "I don't eat meat on most days of the week"),
        ("My number is the old one 5551234 as before", "My number is the old one 5551235 as before"),
        ("我今天晚上可以吃很辣的四川菜", "我今天晚上不可以吃很辣的四川菜"),
        ("tea please", "tea now please"),
    ],
)
async def test_what_differs_in_a_number_or_a_negation_is_not_the_same(
    store: SessionStore, memory: StoredMemory, one: str, other: str
) -> None:
    await remember(store, said("1", one, role="user"), said("2", other, role="user"))
    assert [hit.count for hit in await memory.search(query(one))] == [1, 1]


async def test_near_vectors_say_the_same(store: SessionStore) -> None:
    await remember(store, said("1", "a b c d e f", role="user"), said("2", "f e d c b a g h", second=1, role="user"))
    await store.memories.use_embedder("memory", "made-up", 32)
    waiting = await store.memories.pending("memory", 0, 9)
    (same,) = await MadeUpEmbedder().embed(["a"], role="passage")
    await store.memories.fill("memory", "made-up", [(one.ref, same) for one in waiting])
    (hit,) = await StoredMemory(store.memories).search(query("a b"))
    assert (hit.record.memory_id, hit.count) == ("2", 2)


async def test_replies_leave_room_for_what_the_user_has_said(store: SessionStore, memory: StoredMemory) -> None:
    for n, dish in enumerate(("mapo tofu", "kung pao chicken", "boiled fish")):
        await remember(store, said(f"r{n}", f"{dish} is a dish for you to order", role="assistant"))
    await remember(store, said("1", "dish, but nothing hot", role="user"), said("2", "a dish for me", role="user"))
    hits = await memory.search(query("a dish for you to order"))
    assert sorted(hit.record.role or "" for hit in hits) == ["assistant", "user", "user"]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


async def test_replies_fill_what_nothing_else_matches(store: SessionStore, memory: StoredMemory) -> None:
    await remember(store, *(said(f"{n}", f"reply {word}", role="assistant") for n, word in enumerate("abcd")))
    await remember(store, said("u", "unlike", role="user"))
    assert len(await memory.search(query("reply"))) == 3
    assert len(await memory.search(query("reply", roles=["assistant"], limit=4))) == 4


async def test_hundreds_of_replies_do_not_hide_what_the_user_said(store: SessionStore, memory: StoredMemory) -> None:
    await remember(store, *(said(f"{n}", f"spicy dish {n}", role="assistant") for n in range(200)))
    await remember(
        store, said("u", "and in the end, after all of this, what I really cannot eat is spicy", role="user")
    )
    assert "user" in [hit.record.role for hit in await memory.search(query("spicy dish"))]


async def test_the_newer_wins_where_age_counts(store: SessionStore, memory: StoredMemory) -> None:
    old = MemoryRecord("old", "memory", ALICE, "we live in Ghent", "2025-03-01T00:00:00Z", "user")
    new = MemoryRecord("new", "memory", ALICE, "by now, we live in the town of Bruges", "2026-02-28T00:00:00Z", "user")
    await remember(store, write_of(old), write_of(new))
    by_age = await memory.search(query("where we live", recency_half_life_days=30))
    assert [hit.record.memory_id for hit in by_age] == ["new", "old"]
    assert by_age[1].score == pytest.approx(1 - MOST_AGE, abs=0.001)
    assert [hit.record.memory_id for hit in await memory.search(query("where we live"))] == ["old", "new"]
    kept = await memory.search(query("where we live", recency_half_life_days=30, min_score=0.85))
    assert [hit.record.memory_id for hit in kept] == ["new"]


async def test_of_versions_of_one_thing_the_newest_is_first_and_has_the_best_ones_score(
    store: SessionStore, memory: StoredMemory
) -> None:
    await remember(
        store,
        said("first", "My home is in Ghent", second=0, role="user"),
        said("last", "My home is now in Bruges, far from Ghent", second=9, role="user"),
        said("middle", "My home is now in Ostend", second=5, role="user"),
        said("other", "A home without books is no home for anybody", second=12, role="user"),
    )
    hits = await memory.search(query("Is my home in Ghent", limit=4))
    assert [hit.record.memory_id for hit in hits] == ["last", "middle", "first", "other"]
    assert hits[0].score == pytest.approx(1)
    (best,) = await memory.search(query("Is my home in Ghent", limit=1))
    assert best.record.memory_id == "last"


async def test_what_was_said_later_of_something_else_or_by_somebody_else_is_no_newer_version(
    store: SessionStore, memory: StoredMemory
) -> None:
    await remember(
        store,
        said("fact", "The name of my dog is Rex", second=0, role="user"),
        said("reply", "So the name of your dog is Rex then", second=3, role="assistant"),
        said("aside", "What is the best food for a dog, and how much of it", second=5, role="user"),
    )
    hits = await memory.search(query("name of my dog", limit=3))
    assert [hit.record.memory_id for hit in hits] == ["fact", "reply", "aside"]


async def test_diversity_prefers_what_is_new_among_the_hits(store: SessionStore, memory: StoredMemory) -> None:
    await remember(
        store,
        said("1", "noodles with beef", role="user"),
        said("2", "noodles with beef again", role="user"),
        said("3", "noodles make my sister and all of her friends happy", role="user"),
    )
    assert [h.record.memory_id for h in await memory.search(query("noodles with beef", limit=2))] == ["1", "2"]
    diverse = await memory.search(query("noodles with beef", limit=2, diversity=0.6))
    assert [h.record.memory_id for h in diverse] == ["1", "3"]


async def test_a_blank_query_finds_nothing_and_embeds_nothing(store: SessionStore) -> None:
    await remember(store, said("1", "text"))
    await fill(store)
    embedder = MadeUpEmbedder()
    memory = StoredMemory(store.memories, embedder=embedder)
    for text in ("", "   ", "\n\t", "\u200b"):
        assert await memory.search(query(text)) == []
    assert await memory.search(query("text", limit=0)) == []
    assert embedder.asked == []


async def test_an_embedder_that_fails_leaves_full_text_and_says_so(
    store: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    await remember(store, said("1", "text"))
    await fill(store)
    memory = StoredMemory(store.memories, embedder=MadeUpEmbedder(fails=True))
    with caplog.at_level(logging.WARNING):
        assert shown(await memory.search(query("text"))) == [("text", 1)]
    assert "full text alone: the embedder rests" in caplog.text


async def test_lists_for_people_are_paged_counted_and_erased(store: SessionStore, memory: StoredMemory) -> None:
    await remember(store, *(said(f"{n}", f"text {n}", second=n) for n in range(5)), said("b", "bob's", BOB))
    assert [record.memory_id for record in await memory.newest("memory", ALICE, 2)] == ["3", "4"]
    page = await memory.page("memory", ALICE, None, 3)
    assert [record.memory_id for record in page.items] == ["4", "3", "2"]
    rest = await memory.page("memory", ALICE, page.next, 3)
    assert ([record.memory_id for record in rest.items], rest.next) == (["1", "0"], None)
    assert await memory.delete("memory", ALICE, ["4", "b"]) == 1
    assert await memory.count("memory", ALICE) == 4
    assert await memory.count("memory", BOB) == 1


async def test_errors_are_the_ports_own(store: SessionStore, memory: StoredMemory) -> None:
    with pytest.raises(ScopeRefused):
        await memory.search(query("", scope=Scope()))
    for call in (
        memory.count("memory", Scope()),
        memory.newest("memory", Scope(user_id=""), 1),
        memory.page("memory", Scope(), None, 1),
        memory.delete("memory", Scope(), None),
    ):
        with pytest.raises(ScopeRefused):
            await call
    await remember(store, said("1", "text"))
    await fill(store)
    with pytest.raises(MemoryUnavailable, match="memory embed --collection memory"):
        await StoredMemory(store.memories, embedder=MadeUpEmbedder(name="other")).search(query("text"))
    await store.close()
    with pytest.raises(MemoryUnavailable, match="not open"):
        await memory.search(query("text"))
