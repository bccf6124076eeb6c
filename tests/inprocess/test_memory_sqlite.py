"""Long-term memory in the SQLite store's file: its bytes, older files, crashes, other processes, large scopes."""

import functools
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores import sqlite_search
from sidecar.stores.base import Damaged
from sidecar.stores.sqlite import SqliteStore
from sidecar.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS, VERSION
from sidecar.stores.sqlite_writer import Writer

from .memory_cases import ALICE, BOB, asked, by_vectors, by_words, fill, of, remember, said, texts
from .store_cases import Child, change, contents, end_all, new_owner


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open(new_owner())
    yield store
    await store.close()


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def child(crash_at: str = "") -> Child:
        children.append(Child(path, crash_at))
        assert children[-1].ask("open") == VERSION
        return children[-1]

    yield child
    end_all(children)


def traces(folder: Path, *needles: bytes) -> list[bytes]:
    whole = b"".join(contents(folder).values())
    return [needle for needle in needles if needle in whole]


# Bytes.


@pytest.mark.parametrize("how", ["erased", "replaced and erased", "all erased"])
async def test_erased_text_words_and_vectors_are_in_no_file_of_the_store(
    path: Path, store: SqliteStore, how: str
) -> None:
    text, around = "My zanzibar password is xylophone", "quixotic neighbours"
    secret = said("secret", text, context=around, body=b'{"x": "bodyguard"}')
    await remember(store, *(said(f"{n}", f"ordinary note number {n}", BOB) for n in range(400)))
    await remember(store, secret, said("kept", "an ordinary thing"))
    await fill(store)
    (row,) = (await store.memories.find(of(ALICE), "zanzibar", None, 1)).rows.values()
    assert row.vector is not None
    needles = (b"zanzibar", b"xylophon", b"quixot", b"bodyguard", row.vector)
    assert len(traces(path.parent, *needles)) == len(needles), "the test looks for the wrong thing"
    if how == "replaced and erased":
        await remember(store, said("secret", "something harmless"))
    await store.memories.forget("memory", ALICE, None if how == "all erased" else ["secret"])
    assert traces(path.parent, *needles) == []
    assert len(await texts(store, BOB, "ordinary")) == 50


async def test_erasing_in_many_steps_spares_what_comes_meanwhile(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember(store, *(said(f"{n}", f"note {n}") for n in range(30)))
    monkeypatch.setattr("sidecar.stores.sqlite_memory_writes.ERASED_AT_ONCE", 7)
    submit = Writer.submit

    async def with_a_neighbour(writer: Writer, job: Callable[[sqlite3.Connection], Any]) -> Any:
        result = await submit(writer, job)
        monkeypatch.setattr(Writer, "submit", submit)
        await remember(store, said("late", "a late note"))
        return result

    monkeypatch.setattr(Writer, "submit", with_a_neighbour)
    assert await store.memories.forget("memory", ALICE, None) == 30
    assert await texts(store, ALICE, "note") == ["a late note"]


async def test_a_changed_byte_in_a_record_is_told_as_damage(path: Path, store: SqliteStore) -> None:
    await remember(store, said("1", "the very words"))
    change(path, "UPDATE memories SET text = 'the vary words'")
    with pytest.raises(Damaged, match="'1'"):
        await store.memories.find(of(ALICE), "words", None, 3)


# Older files.


async def test_a_store_of_version_1_is_migrated_with_all_its_sessions(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)")
    for statement in MIGRATIONS[0].statements:
        connection.execute(statement)
    connection.execute("INSERT INTO schema_migrations VALUES (1, 'sessions', '')")
    connection.execute("INSERT INTO sessions VALUES (1, 's', 'k', 1, 0, 1, 0, NULL, NULL, NULL, '')")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()

    store = SqliteStore(path)
    info = await store.open(new_owner())
    assert (info.version, info.migrated_from) == (VERSION, 1)
    assert (await store.acquire("s")).seq == 0
    await remember(store, said("1", "a first memory"))
    assert await texts(store, ALICE, "memory") == ["a first memory"]
    await store.close()


# Crashes and other processes.


@pytest.mark.skipif(os.name == "nt", reason="kills processes by POSIX signals")
@pytest.mark.parametrize(("point", "kept"), [("store.commit.before", []), ("store.commit.after", ["spicy canary"])])
async def test_a_kill_around_a_commit_leaves_memory_with_its_unit(
    store: SqliteStore, start: Callable[..., Child], point: str, kept: list[str]
) -> None:
    child = start(f"{point}:2")  # the first pass is that of `create`
    assert child.ask("create", "s") == 1
    assert child.ask("remember", "s", 1, 0, "alice", "1", "spicy canary") is None
    assert child.end() == -signal.SIGKILL
    assert (await store.load("s")).seq == len(kept)
    assert await texts(store, ALICE, "canary") == kept
    assert [one.text for one in await store.memories.pending("memory", 0, 9)] == kept


async def test_two_processes_see_what_the_other_has_written_and_erased(
    store: SqliteStore, start: Callable[..., Child]
) -> None:
    child = start()
    child.ask("create", "c")
    await remember(store, said("1", "spicy one"), said("b", "spicy other", BOB))
    assert child.ask("search", "alice", "spicy") == ["spicy one"]
    for n in range(20):
        child.send("remember", "c", 1, n, "alice", f"c{n}", f"spicy {n}")
        await remember(store, said(f"p{n}", f"spicy too {n}"))
        assert child.receive() == n + 1
    assert len(await texts(store, ALICE, "spicy")) == len(child.ask("search", "alice", "spicy")) == 41
    assert child.ask("forget", "alice") == 41
    assert await texts(store, ALICE, "spicy") == []
    assert await texts(store, BOB, "spicy") == ["spicy other"]


# Large scopes.


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every scope with more than ten records counts as large."""
    monkeypatch.setattr(sqlite_search, "find", functools.partial(sqlite_search.find, large=10))


@pytest.mark.usefixtures("large")
async def test_a_large_scope_finds_the_same_as_a_small_one(store: SqliteStore) -> None:
    await remember(store, *(said(f"{n}", f"note {n} about tea", role="user", session="s") for n in range(40)))
    await remember(store, *(said(f"{n}", f"note {n} about tea", BOB) for n in range(5)))
    await remember(store, said("w", "wine", role="assistant", session="t"), said("c", "cheese", context="wine"))
    await fill(store)
    found = await store.memories.find(of(ALICE), "wine", asked("wine"), 5)
    assert by_words(found) == ["wine", "cheese"]
    assert by_vectors(found)[0] == "wine"
    found = await store.memories.find(of(ALICE), "note about tea", asked("note 7 about tea"), 100)
    assert len(found.full_text) == 40
    assert len(found.dense) == 42
    assert by_vectors(found)[0] == "note 7 about tea"
    found = await store.memories.find(of(ALICE, roles=["assistant"]), "wine tea", asked("tea"), 50)
    assert by_words(found) == by_vectors(found) == ["wine"]
    found = await store.memories.find(of(ALICE, exclude_session="s"), "wine tea", asked("wine"), 50)
    assert sorted(by_words(found)) == sorted(by_vectors(found)) == ["cheese", "wine"]
    assert len((await store.memories.find(of(BOB), "note", asked("note"), 50)).dense) == 5


@pytest.mark.usefixtures("large")
async def test_the_kept_vectors_of_a_large_scope_follow_every_change(path: Path, store: SqliteStore) -> None:
    other = SqliteStore(path)  # as another process has it
    await other.open(new_owner())
    await remember(store, *(said(f"{n}", f"note {n}") for n in range(20)))
    await fill(store)

    async def nearest(text: str) -> str:
        return by_vectors(await store.memories.find(of(ALICE), "", asked(text), 1))[0]

    assert await nearest("note 3") == "note 3"
    for n in range(20, 90):
        await remember(other, said(f"{n}", f"note {n}"), session="o")
        await fill(other)
        if n % 10 == 0 or n > 85:
            assert await nearest(f"note {n}") == f"note {n}"
    await other.memories.forget("memory", ALICE, ["3"])
    assert await nearest("note 3") != "note 3"
    await remember(other, said("4", "another text"), session="o")
    assert await nearest("note 4") != "note 4"
    await fill(other)
    assert await nearest("another text") == "another text"
    await other.close()
