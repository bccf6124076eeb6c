"""F11 and BR-25: damage in stored files is told, session by session; torn, refused and cut writes lose nothing."""

import contextlib
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.busy import answer
from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostGone, RpcError
from tests.bench.ledger import Ledger
from tests.bench.promises import hold
from tests.bench.wire import Json
from tests.conftest import scaled

IDS = ("s0", "s1", "s2")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


async def fill(host: FakeHost, model: FakeModel) -> None:
    """Three sessions that hold something of everything, closed again."""
    model.otherwise(answer)
    for session_id in IDS:
        session = await host.create_session(sessionId=session_id, state={"n": 1, "of": session_id}, title=session_id)
        for kind in ("talk", "call", "slow"):
            await session.run(f"{kind} {session_id} {'words ' * 40}", runId=f"{session_id}-{kind}")
        with pytest.raises(RpcError):
            await session.run(f"fail {session_id}", runId=f"{session_id}-fail")
        await host.request("closeSession", {"sessionId": session_id})


async def read(host: FakeHost, session_id: str) -> dict[str, Json]:
    """The answer of each method that reads the session."""
    found: dict[str, Json] = {}
    for method, more in (
        ("getState", {"runId": f"{session_id}-talk"}),
        ("getHistory", {"limit": 1000}),
        ("getEvents", {"afterSeq": 0, "limit": 1000}),
        ("exportSession", {}),
    ):
        message = await host.ask(method, {"sessionId": session_id, **more}).message()
        found[method] = message.get("result", message.get("error"))
    found["getState"].pop("server", None)
    return found


def assert_true_or_told(found: dict[str, Json], truth: dict[str, Json], session_id: str) -> int:
    """Each answer is what it was, or says that this session is damaged, and what is left of it; how many say so."""
    told = 0
    for method, said in found.items():
        if "code" in said:
            assert (method, said["data"]["kind"]) == (method, "sessionCorrupt"), said
            assert said["data"]["sessionId"] == session_id
            assert session_id in said["message"]
            told += 1
        else:
            assert said == truth[method], f"{method} gives something else"
    return told


# ---- F11: bytes changed inside the rows, under a sidecar that serves them ----------------------------------------


@dataclass(frozen=True)
class Spot:
    """One stored value."""

    table: str
    column: str
    rowid: tuple[str, tuple[Any, ...]]
    value: bytes


VALUES = {
    "records": "body",
    "events": "data",
    "messages": "body",
    "state": "value",
    "runs": "body",
}
KEYS = {"records": "id", "events": "id, seq", "messages": "id, position", "state": "id, key", "runs": "id, run_id"}


def spots(path: Path, session_id: str) -> list[Spot]:
    """Every value that is stored of a session."""
    found: list[Spot] = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT id FROM sessions WHERE session = ?", (session_id,)).fetchone()
        for table, column in VALUES.items():
            keys = KEYS[table]
            where = " AND ".join(f"{key} = ?" for key in keys.split(", "))
            for *key, value in connection.execute(f"SELECT {keys}, {column} FROM {table} WHERE id = ?", (number,)):
                found.append(Spot(table, column, (where, tuple(key)), bytes(value)))
    return found


def write(path: Path, spot: Spot, value: bytes) -> None:
    """Put other bytes there."""
    where, key = spot.rowid
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute(f"UPDATE {spot.table} SET {spot.column} = ? WHERE {where}", (value, *key))


def mutated(value: bytes, dice: random.Random) -> bytes:
    """Flipped, cut, zeroed, doubled or swapped, so that it differs."""
    start = dice.randrange(len(value))
    end = dice.randrange(start, len(value)) + 1
    piece = value[start:end]
    made = dice.choice(
        (
            value[:start] + bytes([value[start] ^ 1 << dice.randrange(8)]) + value[start + 1 :],
            value[:start],
            value[:start] + bytes(len(piece)) + value[end:],
            value[:end] + piece + value[end:],
            value[:start] + piece[::-1] + value[end:],
        )
    )
    return made if made != value else value + b" "


async def test_a_changed_value_is_damage_of_its_session_and_of_no_other(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    host: FakeHost = await start_host(store=f"sqlite:{path}", env=model.environment)
    await fill(host, model)
    truth = {session_id: await read(host, session_id) for session_id in IDS}
    assert not any("code" in said for found in truth.values() for said in found.values())
    dice = random.Random(11)
    everything = {session_id: spots(path, session_id) for session_id in IDS}
    for turn in range(scaled(200)):
        victim, other = dice.sample(IDS, 2)
        spot = dice.choice(everything[victim])
        write(path, spot, mutated(spot.value, dice))

        told = assert_true_or_told(await read(host, victim), truth[victim], victim)
        assert told or spot.table == "runs", f"a change in {spot.table} was not noticed"
        assert await read(host, other) == truth[other]
        if turn % 10 == 0:
            assert await host.request("getState"), "the process serves on"
            assert set(IDS) - {victim} <= await listed(host)
        write(path, spot, spot.value)
    for session_id in IDS:
        assert await read(host, session_id) == truth[session_id]


async def listed(host: FakeHost) -> set[str]:
    """The ids that a list of sessions shows."""
    return {info["sessionId"] for info in (await host.request("listSessions"))["sessions"]}


# ---- F11: bytes changed in the file, found by the next process ---------------------------------------------------


async def test_bytes_changed_in_the_file_give_the_truth_or_are_told(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    first: FakeHost = await start_host(store=f"sqlite:{path}", env=model.environment)
    await fill(first, model)
    truth = {session_id: await read(first, session_id) for session_id in IDS}
    first.hang_up()
    await first.wait()
    whole = path.read_bytes()
    dice = random.Random(12)
    told = 0
    for _ in range(scaled(8)):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 16))):
            start = dice.randrange(100, len(whole))
            damaged[start : start + 40] = dice.randbytes(len(damaged[start : start + 40]))
        path.write_bytes(damaged)
        host: FakeHost = await start_host(store=f"sqlite:{path}", env=model.environment)
        for session_id in IDS:
            found = await read(host, session_id)
            if any("code" in said and said["data"]["kind"] == "storageFailed" for said in found.values()):
                told += 1  # the file as a whole cannot be used
            else:
                told += assert_true_or_told(found, truth[session_id], session_id)
        assert (await host.request("run", {"input": "x", "agent": {"model": "scripted:echo"}}))["text"] == "x"
        host.hang_up()
        await host.wait()
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
    assert told, "no damage was found at all"


# ---- BR-25 -------------------------------------------------------------------------------------------------------


async def test_a_last_record_that_is_torn_anywhere_is_whole_or_absent(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    """(a) The write-ahead log is cut inside what the last commit wrote; what was acknowledged before is untouched."""
    before, after, torn = tmp_path / "before", tmp_path / "after", tmp_path / "torn"
    at_work = tmp_path / "work"
    at_work.mkdir()
    host: FakeHost = await start_host(store=f"sqlite:{at_work}/sessions.db", env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says("one")
    await session.run("first", runId="r1")
    shutil.copytree(at_work, before)
    model.says(T("two"), Stall())
    await session.start("second", runId="r2").text_contains("two")
    shutil.copytree(at_work, after)
    host.kill()
    await host.wait()
    start, end = ((folder / "sessions.db-wal").stat().st_size for folder in (before, after))
    assert start < end, "the log was emptied in between"

    dice = random.Random(25)
    seen: set[int] = set()
    for cut in [start, end, *(dice.randrange(start + 1, end) for _ in range(scaled(4)))]:
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(after, torn)
        with (torn / "sessions.db-wal").open("r+b") as log:
            log.truncate(cut)
        again: FakeHost = await start_host(store=f"sqlite:{torn}/sessions.db", env=model.environment)
        found = await again.resume_session("s")
        history = await found.history()
        assert history in (
            [("user", "first"), ("assistant", "one")],
            [("user", "first"), ("assistant", "one"), ("user", "second")],
        )
        seen.add(len(history))
        model.says("three")
        assert (await found.run("third"))["text"] == "three"
        assert await found.history() == [*history, ("user", "third"), ("assistant", "three")]
        again.kill()
        await again.wait()
        with contextlib.closing(sqlite3.connect(torn / "sessions.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert seen == {2, 3}, "the log was not cut inside the last record"


needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None
    or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0,
    reason="strace cannot be used here",
)
WRITES = 60
"""The store writes more often than this in what `day` asks for."""


def some_writes(seed: int) -> list[int]:
    """Which of them go wrong."""
    return sorted(random.Random(seed).sample(range(1, WRITES), min(WRITES - 1, scaled(3))))


def failing(k: int, how: str, log: Path) -> tuple[str, ...]:
    """A command that lets the k-th write of the store's one writing thread go wrong, and logs that."""
    return ("strace", "-f", "-qq", "-o", str(log), "-e", "trace=pwrite64", "-e", f"inject=pwrite64:{how}:when={k}")


async def make_store(start_host: Any, store: str) -> None:
    """A store that is there, so that opening it writes nothing."""
    host: FakeHost = await start_host(store=store)
    await host.create_session(sessionId="earlier")
    await host.request("deleteSession", {"sessionId": "earlier"})
    host.hang_up()
    await host.wait()


async def day(host: FakeHost) -> None:
    """What a host asks for; what was refused for want of storage it asks again, and gets."""
    for session_id in ("a", "b"):
        runs = [{"input": f"talk {session_id}{n}", "runId": f"{session_id}{n}"} for n in (1, 2)]
        for method, params in (("createSession", {}), *(("run", run) for run in runs)):
            message = await host.ask(method, {"sessionId": session_id, **params}).message()
            if "error" in message:
                assert message["error"]["data"]["kind"] == "storageFailed", message
                message = await host.ask(method, {"sessionId": session_id, **params}).message()
            assert "result" in message, "saving does not resume by itself"


@needs_strace
@pytest.mark.parametrize("k", some_writes(26))
async def test_a_write_that_finds_the_disk_full_is_told_and_the_next_one_goes_on(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, tmp_path: Path, k: int
) -> None:
    """(b) Once, at the k-th write."""
    model.otherwise(answer)
    await make_store(start_host, store)
    under = failing(k, "error=ENOSPC", tmp_path / "trace")
    host: FakeHost = await start_host(store=store, env=model.environment, ledger=ledger, under=under)
    await day(host)
    host.hang_up()
    await host.wait()
    assert "(INJECTED)" in (tmp_path / "trace").read_text()

    again: FakeHost = await start_host(store=store, env=model.environment, ledger=ledger)
    tally = await hold(ledger, again, model.requests)
    assert tally.repaired == 0
    assert tally.runs["completed"] == 4


@needs_strace
@pytest.mark.parametrize("k", some_writes(27))
async def test_a_kill_between_two_writes_of_the_store_loses_nothing(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, tmp_path: Path, k: int
) -> None:
    """(c) Right after the k-th write."""
    model.otherwise(answer)
    await make_store(start_host, store)
    under = failing(k, "signal=KILL", tmp_path / "trace")
    host = FakeHost(store=store, env=model.environment, ledger=ledger, under=under, greet=False)
    async with host:
        host.may_be_cut = True
        with contextlib.suppress(HostGone):
            await host.request("initialize")
            await day(host)
        host.hang_up()
        assert await host.wait() != 0, "the kill did not come"

    again: FakeHost = await start_host(store=store, env=model.environment, ledger=ledger)
    await hold(ledger, again, model.requests)
    for session_id in ("a", "b"):
        session = await again.create_session(sessionId=session_id)
        assert (await session.run(f"talk {session_id} more", runId=f"{session_id}-more"))["status"] == "completed"
