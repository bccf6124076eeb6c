"""Damage in the SQLite store's file is told as damage, of its session, and never as a shorter history."""

import contextlib
import os
import random
from pathlib import Path

import pytest

from sidecar.stores.base import Damaged, Foreign, PutState, SessionQuery
from sidecar.stores.sqlite import SqliteStore

from .store_cases import all_seqs, change, contents, fill, new_owner, scaled, unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def overwrite(path: Path, whole: bytes, changes: dict[int, bytes]) -> None:
    damaged = bytearray(whole)
    for start, piece in changes.items():
        damaged[start : start + len(piece)] = piece
    path.write_bytes(damaged[: len(whole)])


async def test_a_changed_byte_is_damage_of_its_session_only(path: Path) -> None:
    await fill(path, sessions=2, messages=3, body=b'"the very words"')
    change(path, "UPDATE messages SET body = CAST('\"the vary words\"' AS BLOB) WHERE id = 1 AND position = 2")
    store = SqliteStore(path)
    await store.open(new_owner())
    for read in (store.messages("s0"), store.events("s0", 0, 10, 1 << 20)):
        with pytest.raises(Damaged) as damage:
            await read
        assert (damage.value.session, damage.value.saved) == ("s0", {"messages": 2, "events": 3})
    assert len((await store.messages("s1")).items) == 3
    await store.close()


@pytest.mark.parametrize(
    "loss",
    [
        "DELETE FROM messages WHERE id = 1 AND position = 3",
        "DELETE FROM messages WHERE id = 1 AND position = 1",
        "DELETE FROM events WHERE id = 1 AND seq = 2",
        "DELETE FROM events WHERE id = 1 AND seq = 3",
        "DELETE FROM records WHERE id = 1",
        "DELETE FROM sessions WHERE id = 1",
        "UPDATE state SET value = x'00' WHERE id = 1",
    ],
)
async def test_a_lost_row_is_damage_and_not_a_shorter_session(path: Path, loss: str) -> None:
    await fill(path, sessions=2, messages=3)
    store = SqliteStore(path)
    await store.open(new_owner())
    lease = await store.acquire("s0")
    await store.commit(unit("s0", lease.epoch, 3, PutState("k", b"1"), events=0))
    change(path, loss)
    with pytest.raises(Damaged, match="s0"):
        await store.load("s0")
    assert (await store.load("s1")).seq == 3
    await store.close()


async def test_lost_events_are_damage_when_events_are_read(path: Path) -> None:
    await fill(path, messages=6)
    store = SqliteStore(path)
    await store.open(new_owner())
    for lost in (6, 3):
        change(path, "DELETE FROM events WHERE seq = ?", lost)
        with pytest.raises(Damaged, match=f"event {lost} is gone"):
            await store.events("s0", 0, 10, 1 << 20)
    await store.close()


async def test_a_damaged_page_gives_a_typed_error_and_the_file_is_kept(path: Path) -> None:
    await fill(path, sessions=3, messages=30, body=b"x" * 3000)
    whole = contents(path.parent)[path.name]
    refused = 0
    for start in range(100, len(whole), 4096 * 8):
        overwrite(path, whole, {start: b"\xff" * 2000})
        store = SqliteStore(path)
        try:
            await store.open(new_owner())
            for session in ("s0", "s1", "s2"):
                await store.load(session)
                assert await all_seqs(store, session) == list(range(1, 31))
        except (Damaged, Foreign):
            refused += 1
        finally:
            await store.close()
        assert len(contents(path.parent)[path.name]) >= len(whole)
    assert refused, "no damage was found at all"


async def everything(store: SqliteStore, session: str) -> object:
    """What a reader can see of a session."""
    snapshot = await store.load(session)
    messages = (await store.messages(session, limit=100)).items
    events = (await store.events(session, 0, 100, 1 << 20)).items
    return snapshot.body, snapshot.state, snapshot.seq, messages, events


async def test_bytes_changed_at_random_give_the_truth_or_a_typed_error(path: Path) -> None:
    await fill(path, sessions=4, messages=12, body=b"words " * 60)
    whole = contents(path.parent)[path.name]
    store = SqliteStore(path)
    await store.open(new_owner())
    truth = {f"s{n}": await everything(store, f"s{n}") for n in range(4)}
    await store.close()
    chance = random.Random(11)
    outcomes: list[type] = []
    for _ in range(scaled(60)):
        starts = (chance.randrange(100, len(whole)) for _ in range(chance.choice((1, 8, 64))))
        overwrite(path, whole, {start: chance.randbytes(chance.choice((1, 40))) for start in starts})
        store = SqliteStore(path)
        try:
            await store.open(new_owner())
        except (Damaged, Foreign) as error:
            outcomes.append(type(error))
            continue
        for session, known in truth.items():
            try:
                assert await everything(store, session) == known
            except Damaged as error:
                outcomes.append(type(error))
        with contextlib.suppress(Damaged):
            await store.list(SessionQuery(), None, 10)
        await store.close()
    assert Damaged in outcomes


async def test_a_file_that_was_cut_is_damage(path: Path) -> None:
    await fill(path, messages=30, body=b"x" * 3000)
    os.truncate(path, 4096 * 5)
    store = SqliteStore(path)

    async def read() -> None:
        await store.open(new_owner())
        await store.load("s0")

    with pytest.raises(Damaged):
        await read()
    await store.close()
