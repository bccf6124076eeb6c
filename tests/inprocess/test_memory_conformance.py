"""What every store promises of long-term memory. Another store is one more parameter of `place`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from providers.api.memory import Scope
from sidecar.stores.base import Missing, Refused, SeqConflict, SessionStore, Unavailable

from .memory_cases import (
    ALICE,
    BOB,
    DIMENSION,
    asked,
    by_vectors,
    by_words,
    fill,
    made_up,
    of,
    remember,
    said,
    texts,
)
from .store_cases import Place, first, scaled, unit


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    await place.close()


@pytest.fixture
async def store(place: Place) -> SessionStore:
    return await place.open()


async def ids(store: SessionStore, scope: Scope = ALICE) -> list[str]:
    return [row.write.memory_id for row in await store.memories.newest(of(scope), 100)]


async def test_a_record_reads_back_whole(store: SessionStore) -> None:
    scope = Scope("app", "agent", "session", "alice")
    write = said("m", "words", scope, context="before\nafter", role="user", session="s", body=b'{"messageId": "1"}')
    await remember(store, write)
    assert [row.write for row in await store.memories.newest(of(scope), 9)] == [write]


async def test_records_commit_with_their_unit_or_not_at_all(store: SessionStore) -> None:
    await store.create("s", first("s"))
    with pytest.raises(SeqConflict):
        await store.commit(unit("s", 1, 7, memory=[said("m", "never written")]))
    assert await texts(store, ALICE, "written") == []
    good = unit("s", 1, 0, memory=[said("m", "now it is written")])
    assert await store.commit(good) == 1
    assert await store.commit(good) == 1, "the same unit again"
    assert await texts(store, ALICE, "written") == ["now it is written"]


async def test_units_that_are_refused_among_others_leave_no_words_behind(store: SessionStore) -> None:
    for n in range(9):
        await store.create(f"s{n}", first(f"s{n}"))
    units = [unit(f"s{n}", 1, 5 if n % 3 == 0 else 0, memory=[said(f"m{n}", f"note {n}")]) for n in range(9)]
    results = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    assert [isinstance(result, SeqConflict) for result in results] == [n % 3 == 0 for n in range(9)]
    assert sorted(await texts(store, ALICE, "note")) == [f"note {n}" for n in (1, 2, 4, 5, 7, 8)]


async def test_memory_outlives_its_session_and_a_restart(place: Place, store: SessionStore) -> None:
    await remember(store, said("m", "the harbour at dusk"))
    await store.delete(await store.acquire("s"))
    await store.close()
    store = await place.open()
    assert await texts(store, ALICE, "harbour") == ["the harbour at dusk"]
    with pytest.raises(Missing):
        await store.load("s")


@pytest.mark.parametrize(
    "write",
    [
        said("m", "text", Scope()),
        said("m", "text", Scope(user_id="")),
        said("m", "text", Scope(user_id="alice", agent_id="")),
        said("m", " \n\u200b\t"),
        said("m", ""),
        said("", "text"),
        said("m", "text", collection=""),
        replace(said("m", "text"), created_at="yesterday"),
        replace(said("m", "text"), created_at="2026-03-01T00:00:00"),
    ],
)
async def test_what_cannot_be_remembered_is_refused_with_its_whole_unit(store: SessionStore, write: object) -> None:
    await store.create("s", first("s"))
    with pytest.raises(Refused):
        await store.commit(unit("s", 1, 0, memory=[said("good", "text"), write]))
    assert (await store.load("s")).seq == 0
    assert await ids(store) == []


# Words.


@pytest.mark.parametrize("query", ["order", "DISH", "cafe", "café", "CAFÉ", "ordered!", "dishes?", "cafe\u0301"])
async def test_words_are_found_at_once_by_their_stems_without_case_or_accents(store: SessionStore, query: str) -> None:
    await remember(store, said("1", "I was ordering two dishes at the Café."), said("2", "Something else"))
    assert await texts(store, ALICE, query) == ["I was ordering two dishes at the Café."]


@pytest.mark.parametrize(
    ("text", "query", "other"),
    [
        ("我不能吃辣的食物", "给我点不辣的食物", "天气"),
        ("昨天点了宫保鸡丁", "鸡丁", "丁鸡"),
        ("饺子 and tea", "饺子", "面条"),
        ("辛いものは食べられません", "辛いもの", "天気"),
        ("저는 매운 음식을 못 먹어요", "매운 음식", "날씨"),
        ("ฉันกินอาหารเผ็ดไม่ได้", "อาหารเผ็ด", "แมว"),
        ("मुझे मसालेदार खाना पसंद नहीं", "मसालेदार", "मौसम"),
        ("לא אוכל חריף", "חריף", "מזג"),
        ("Straße nach Köln", "STRASSE köln", "Bonn"),
    ],
)
async def test_scripts_of_the_world_are_found(store: SessionStore, text: str, query: str, other: str) -> None:
    await remember(store, said("1", text), said("2", "nothing of the kind"))
    assert await texts(store, ALICE, query) == [text]
    assert await texts(store, ALICE, other) == []


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "a AND",
        "NEAR(a b)",
        "text:secret",
        "scope:x",
        "sec*",
        "^secret",
        "-secret",
        "((",
        "'; --",
        "a\x00b",
        "{",
        "+",
    ],
)
async def test_a_query_is_words_and_never_syntax(store: SessionStore, query: str) -> None:
    await remember(store, said("1", "nothing like it"))
    assert await texts(store, ALICE, query) == []
    assert await texts(store, ALICE, query + " nothing") == ["nothing like it"]


async def test_a_query_without_words_finds_nothing(store: SessionStore) -> None:
    await remember(store, said("1", "!!! ... 🥟"))
    for query in ("", "  ", "!!!", "\u200b", "🥟"):
        assert await texts(store, ALICE, query) == []


async def test_a_very_long_query_is_searched_by_its_longest_words(store: SessionStore) -> None:
    await remember(store, said("1", "the extraordinary lighthouse"))
    query = " ".join(f"w{n}" for n in range(5_000)) + " lighthouse"
    assert await texts(store, ALICE, query) == ["the extraordinary lighthouse"]


async def test_rare_words_count_more_and_neighbours_less_than_the_text_itself(store: SessionStore) -> None:
    await remember(
        store,
        *(said(f"common{n}", f"a note of day {n}") for n in range(9)),
        said("rare", "a note of the lighthouse"),
        said("near", "and there we met", context="a note of the lighthouse"),
    )
    found = await texts(store, ALICE, "note of the lighthouse")
    assert found[0] == "a note of the lighthouse"
    assert "and there we met" in found
    assert await texts(store, ALICE, "lighthouse") == ["a note of the lighthouse", "and there we met"]


async def test_what_others_say_does_not_change_a_rank(store: SessionStore) -> None:
    await remember(store, said("1", "red apples"), said("2", "green apples"), said("3", "red wine"), said("4", "tea"))
    before = await texts(store, ALICE, "red apples wine")
    await remember(store, *(said(f"{n}", "wine wine tea", BOB) for n in range(50)))
    assert await texts(store, ALICE, "red apples wine") == before


# Scopes and filters.


async def test_a_scope_reads_what_is_exactly_its_own(store: SessionStore) -> None:
    whole = Scope("app", "agent", "s1", "alice")
    await remember(store, said("1", "spicy", whole), said("2", "spicy", replace(whole, session_id="s2")))
    await remember(store, said("3", "spicy", BOB), said("4", "spicy", Scope(application_id="alice")))
    for scope, wanted in {
        ALICE: ["2", "1"],
        Scope(user_id="alice", session_id="s1"): ["1"],
        Scope(application_id="app"): ["2", "1"],
        Scope(agent_id="agent", user_id="alice"): ["2", "1"],
        Scope(agent_id="agent", user_id="bob"): [],
        Scope(user_id="bob", session_id="s1"): [],
        Scope(agent_id="other", user_id="alice"): [],
        Scope(agent_id="other", session_id="s1"): [],
        Scope(application_id="other", user_id="alice"): [],
        Scope(application_id="other", agent_id="agent"): [],
        Scope(user_id="alice "): [],
        Scope(user_id="Alice"): [],
        Scope(user_id="alice/../bob"): [],
        Scope(agent_id="alice"): [],
        BOB: ["3"],
    }.items():
        assert await ids(store, scope) == wanted, scope
        assert len(await texts(store, scope, "spicy")) == len(wanted), scope
        assert await store.memories.count(of(scope)) == len(wanted), scope


@pytest.mark.parametrize("scope", [Scope(), Scope(user_id=""), Scope(user_id="alice", session_id="")])
async def test_a_scope_that_says_nothing_is_refused_everywhere(store: SessionStore, scope: Scope) -> None:
    await remember(store, said("1", "spicy"))
    memories = store.memories
    for call in (
        memories.find(of(scope), "spicy", None, 3),
        memories.newest(of(scope), 3),
        memories.page(of(scope), None, 3),
        memories.count(of(scope)),
        memories.forget("memory", scope, None),
    ):
        with pytest.raises(Refused):
            await call
    assert await ids(store) == ["1"]


async def test_collections_do_not_meet(store: SessionStore) -> None:
    await remember(store, said("1", "here"), said("1", "here and there", collection="other"))
    assert await texts(store, ALICE, "here") == ["here"]
    assert await texts(store, ALICE, "here", collection="other") == ["here and there"]
    assert await texts(store, ALICE, "here", collection="none") == []
    assert [(info.name, info.records) for info in await store.memories.collections()] == [("memory", 1), ("other", 1)]


async def test_roles_and_a_session_can_be_left_out(store: SessionStore) -> None:
    await remember(
        store,
        said("1", "tea please", role="user", session="old"),
        said("2", "tea it is", role="assistant", session="old", second=1),
        said("3", "tea now", role="user", session="new", second=2),
        said("4", "tea of nobody", second=3),
    )
    await fill(store)
    cases: tuple[tuple[dict[str, Any], list[str]], ...] = (
        ({"roles": ["user"]}, ["tea now", "tea please"]),
        ({"roles": ["user"], "exclude_session": "new"}, ["tea please"]),
        ({"exclude_session": "old"}, ["tea of nobody", "tea now"]),
        ({"roles": []}, []),
    )
    for fields, wanted in cases:
        where = of(ALICE, **fields)
        found = await store.memories.find(where, "tea", asked("tea"), 10)
        assert sorted(by_words(found), reverse=True) == sorted(by_vectors(found), reverse=True) == sorted(wanted)[::-1]
        assert await store.memories.count(where) == len(wanted)


# Replacing, erasing.


async def test_the_same_id_in_the_same_scope_replaces_the_record(store: SessionStore) -> None:
    await remember(store, said("1", "I live in Ghent"), said("1", "Bob lives in Ghent", BOB))
    await fill(store)
    await remember(store, said("1", "I live in Bruges"))
    assert await texts(store, ALICE, "Ghent") == []
    assert await texts(store, ALICE, "Bruges") == ["I live in Bruges"]
    assert await texts(store, BOB, "Ghent") == ["Bob lives in Ghent"]
    assert len(await store.memories.pending("memory", 0, 10)) == 1, "another text needs another vector"
    assert await store.memories.count(of(ALICE)) == 1


async def test_the_very_same_record_again_keeps_its_vector(store: SessionStore) -> None:
    await remember(store, said("1", "I live in Ghent"))
    await fill(store)
    await remember(store, said("1", "I live in Ghent"))
    assert await store.memories.pending("memory", 0, 10) == []
    assert await ids(store) == ["1"]


async def test_what_is_erased_is_found_by_nothing(store: SessionStore) -> None:
    await remember(store, *(said(f"{n}", f"spicy dish {n}", second=n) for n in range(5)), said("1", "spicy", BOB))
    await fill(store)
    assert await store.memories.forget("memory", ALICE, ["1", "3", "unknown"]) == 2
    left = ["spicy dish 0", "spicy dish 2", "spicy dish 4"]
    found = await store.memories.find(of(ALICE), "spicy", asked("spicy dish"), 10)
    assert sorted(by_words(found)) == sorted(by_vectors(found)) == left
    assert await store.memories.forget("memory", ALICE, None) == 3
    assert await store.memories.forget("memory", ALICE, None) == 0
    assert await ids(store) == []
    assert await ids(store, BOB) == ["1"]


async def test_a_late_vector_does_not_raise_the_dead_nor_pass_to_another_text(store: SessionStore) -> None:
    await remember(store, said("1", "erased"), said("2", "replaced"), said("3", "stays"))
    await store.memories.use_embedder("memory", "made-up", DIMENSION)
    late = [(one.ref, made_up(one.text)) for one in await store.memories.pending("memory", 0, 10)]
    await store.memories.forget("memory", ALICE, ["1"])
    await remember(store, said("2", "another text"))
    assert await store.memories.fill("memory", "made-up", late) == 1
    assert await store.memories.fill("memory", "made-up", late) == 0
    found = await store.memories.find(of(ALICE), "", asked("erased replaced stays"), 10)
    assert by_vectors(found) == ["stays"]
    assert [one.text for one in await store.memories.pending("memory", 0, 10)] == ["another text"]


# Lists.


async def test_the_newest_come_by_time_however_it_is_spelled(store: SessionStore) -> None:
    times = {
        "1": "2026-03-01T10:00:00Z",
        "3": "2026-03-01T10:00:00.250Z",
        "4": "2026-03-01T12:00:01+02:00",
        "2": "2026-03-01T10:00:00.1+00:00",
    }
    await remember(store, *(replace(said(name, "text"), created_at=at) for name, at in times.items()))
    assert await ids(store) == ["4", "3", "2", "1"]
    assert len(await store.memories.newest(of(ALICE), 2)) == 2


async def test_pages_neither_skip_nor_repeat_while_others_write(store: SessionStore) -> None:
    total = scaled(60)
    await remember(store, *(said(f"{n:03}", f"text {n}", second=n // 3) for n in range(total)))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.memories.page(of(ALICE), cursor, 7)
        seen += [row.write.memory_id for row in page.items]
        cursor = page.next
        if cursor is None:
            break
        await remember(store, said(f"new{len(seen)}", "newer", second=total), session="other")
        await store.memories.forget("memory", ALICE, [f"new{len(seen)}", seen[0]])
    assert seen == [f"{n:03}" for n in range(total - 1, -1, -1)]


@pytest.mark.parametrize("cursor", ["", "!", "e30", "WzEsMl0x", "WyIxIiwyXQ", "W" * 9])
async def test_a_malformed_cursor_is_a_value_error(store: SessionStore, cursor: str) -> None:
    with pytest.raises(ValueError, match="malformed cursor"):
        await store.memories.page(of(ALICE), cursor, 3)


async def test_a_store_that_is_not_open_says_so(store: SessionStore) -> None:
    await remember(store, said("1", "text"))
    await store.close()
    for call in (store.memories.count(of(ALICE)), store.memories.forget("memory", ALICE, None)):
        with pytest.raises(Unavailable, match="not open"):
            await call
