"""What the SQLite store promises when processes share it, stop, or are killed. Each child is a real process."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from sidecar.stores.base import Fenced, Locked, SessionStore
from sidecar.stores.sqlite import SqliteStore
from sidecar.stores.sqlite_schema import VERSION

from .store_cases import TIME, Child, all_seqs, end_all, first, new_owner, scaled, unit

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills and stops processes by POSIX signals")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SessionStore]:
    store = SqliteStore(path)
    await store.open(new_owner())
    yield store
    await store.close()


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def child(*, opened: bool = True, crash_at: str = "", since: str = TIME) -> Child:
        children.append(Child(path, crash_at, since))
        if opened:
            assert children[-1].ask("open") == VERSION
        return children[-1]

    yield child
    end_all(children)


async def holding(store: SessionStore, child: Child, session: str = "s") -> int:
    """Let the child own a session that this process has made."""
    await store.release(await store.create(session, first(session)))
    epoch, _, _ = child.ask("acquire", session)
    return epoch


async def test_a_living_owner_keeps_its_session(store: SessionStore, start: Callable[..., Child]) -> None:
    child = start()
    await holding(store, child)
    with pytest.raises(Locked) as refusal:
        await store.acquire("s")
    assert (refusal.value.pid, refusal.value.since) == (child.process.pid, TIME)
    owner = (await store.load("s")).owner
    assert owner is not None
    assert owner.pid == child.process.pid


async def test_a_killed_owner_is_taken_over(store: SessionStore, path: Path, start: Callable[..., Child]) -> None:
    child = start()
    epoch = await holding(store, child)
    assert child.ask("commit", "u", "s", epoch, 0, 3) == 3
    child.kill()

    assert (await store.load("s")).owner is None
    lease = await store.acquire("s")

    assert (lease.took_over, lease.epoch, lease.seq) == (True, epoch + 1, 3)
    assert await store.commit(unit("s", lease.epoch, 3)) == 4
    assert len(list((path.parent / "sessions.db.owners").iterdir())) == 1, "the dead owner's file is still there"


async def test_an_owner_that_closes_leaves_its_sessions_free(store: SessionStore, start: Callable[..., Child]) -> None:
    child = start()
    await holding(store, child)
    assert child.ask("close") == "closed"
    assert not (await store.acquire("s")).took_over


async def test_a_stopped_owner_keeps_its_session(store: SessionStore, start: Callable[..., Child]) -> None:
    child = start()
    epoch = await holding(store, child)
    os.kill(child.process.pid, signal.SIGSTOP)
    with pytest.raises(Locked):
        await store.acquire("s")
    os.kill(child.process.pid, signal.SIGCONT)
    assert child.ask("commit", "u", "s", epoch, 0, 1) == 1


async def test_an_owner_that_lost_its_lock_is_fenced_when_it_wakes(
    store: SessionStore, path: Path, start: Callable[..., Child]
) -> None:
    child = start()
    epoch = await holding(store, child)
    os.kill(child.process.pid, signal.SIGSTOP)
    with sqlite3.connect(path) as connection:
        (owner,) = connection.execute("SELECT owner_id FROM sessions").fetchone()
    connection.close()
    (path.parent / "sessions.db.owners" / f"{owner}.lock").unlink()  # as if the system had freed the lock
    lease = await store.acquire("s")
    os.kill(child.process.pid, signal.SIGCONT)

    assert child.ask("commit", "late", "s", epoch, 0, 1) == "Fenced"
    assert await all_seqs(store, "s") == []
    assert await store.commit(unit("s", lease.epoch, 0)) == 1


async def test_a_forked_child_does_not_keep_its_parents_sessions(
    store: SessionStore, start: Callable[..., Child]
) -> None:
    child = start()
    await holding(store, child)
    grandchild: int = child.ask("fork")
    child.kill()
    try:
        assert (await store.acquire("s")).took_over
    finally:
        os.kill(grandchild, signal.SIGKILL)


async def test_of_many_contenders_one_wins_and_epochs_rise(store: SessionStore, start: Callable[..., Child]) -> None:
    children = [start() for _ in range(8)]
    await store.release(await store.create("s", first("s")))
    epochs = [1]
    while children:
        for child in children:
            child.send("acquire", "s")
        answers = [child.receive() for child in children]
        winners = [child for child, answer in zip(children, answers, strict=True) if answer != "Locked"]
        assert len(winners) == 1, answers
        epochs += [answer[0] for answer in answers if answer != "Locked"]
        winners[0].kill()
        children.remove(winners[0])
    assert epochs == list(range(1, 10))


@pytest.mark.parametrize("point", ["store.commit.before", "store.commit.after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_a_kill_around_a_commit_leaves_whole_units(
    store: SessionStore, start: Callable[..., Child], point: str, nth: int
) -> None:
    child = start(crash_at=f"{point}:{nth + 1}")  # the first pass is that of `acquire`
    epoch = await holding(store, child)
    acknowledged = 0
    for turn in range(nth):
        answer = child.ask("commit", f"u{turn}", "s", epoch, turn * 3, 3)
        acknowledged = acknowledged if answer is None else answer
    assert child.end() == -signal.SIGKILL

    lease = await store.acquire("s")
    assert lease.took_over
    assert acknowledged == (nth - 1) * 3
    assert lease.seq == acknowledged + (3 if point == "store.commit.after" else 0)
    assert await all_seqs(store, "s") == list(range(1, lease.seq + 1))


async def test_a_kill_at_any_time_loses_nothing_acknowledged(store: SessionStore, start: Callable[..., Child]) -> None:
    for round_ in range(scaled(4)):
        session = f"s{round_}"
        child = start()
        epoch = await holding(store, child, session)
        child.send("fill", session, epoch, 0, 100_000)
        acknowledged = [child.receive() for _ in range(20 + 13 * round_)]
        child.process.kill()
        while (seq := child.receive()) is not None:
            acknowledged.append(seq)
        child.end()

        lease = await store.acquire(session)

        assert lease.seq in (acknowledged[-1], acknowledged[-1] + 1)
        assert await all_seqs(store, session) == list(range(1, lease.seq + 1))


async def test_a_takeover_against_the_last_commit_has_one_outcome(
    store: SessionStore, path: Path, start: Callable[..., Child]
) -> None:
    child = start()
    for attempt in range(scaled(20)):
        session = f"s{attempt}"
        epoch = await holding(store, child, session)
        with sqlite3.connect(path) as connection:  # the owner loses its lock; a takeover is free from here on
            connection.execute("UPDATE sessions SET owner_id = 'dead' WHERE session = ?", (session,))
        connection.close()
        child.send("commit", "last", session, epoch, 0, 1)
        await asyncio.sleep(0.0003 * (attempt % 10))  # the race is to be met at different moments
        lease = await store.acquire(session)
        answer = child.receive()
        assert (answer, lease.seq) in ((1, 1), ("Fenced", 0)), (answer, lease)
        assert await all_seqs(store, session) == list(range(1, lease.seq + 1))
        with pytest.raises(Fenced):
            await store.commit(unit(session, epoch, lease.seq))


async def test_creating_with_the_same_key_in_two_processes_gives_one_session(
    store: SessionStore, start: Callable[..., Child]
) -> None:
    children = [start(), start()]
    for child in children:
        child.send("create", "s")
    assert sorted(map(str, (child.receive() for child in children))) == ["1", "Locked"]
    assert (await store.load("s")).seq == 0


async def test_processes_that_create_the_store_at_once_all_open_it(start: Callable[..., Child], path: Path) -> None:
    children = [start(opened=False) for _ in range(4)]
    for child in children:
        child.send("open")
    assert [child.receive() for child in children] == [VERSION] * 4
    assert [child.ask("create", f"s{n}") for n, child in enumerate(children)] == [1] * 4


@pytest.mark.parametrize("point", ["store.migrate.before", "store.migrate.after"])
async def test_a_kill_in_the_migration_leaves_a_store_that_opens(
    start: Callable[..., Child], path: Path, point: str
) -> None:
    child = start(opened=False, crash_at=f"{point}:1")
    assert child.ask("open") is None
    assert child.end() == -signal.SIGKILL
    assert start().ask("create", "s") == 1


async def test_wrong_clocks_take_nothing_over(store: SessionStore, start: Callable[..., Child]) -> None:
    for since in ("2026-01-01T01:00:00Z", "1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"):
        await holding(store, start(since=since), since)
        with pytest.raises(Locked):
            await store.acquire(since)


async def test_two_processes_write_side_by_side(store: SessionStore, start: Callable[..., Child]) -> None:
    count = scaled(150)
    children = [start() for _ in range(3)]
    for n, child in enumerate(children):
        child.send("fill", f"s{n}", await holding(store, child, f"s{n}"), 0, count)
    for child in children:
        assert [child.receive() for _ in range(count + 1)] == [*range(1, count + 1), "filled"]
    for n in range(3):
        assert (await store.load(f"s{n}")).seq == count
