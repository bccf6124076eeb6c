"""Full, failing, read-only and busy: what the SQLite store tells, and that saving resumes by itself."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.base import PutMessage, Unavailable, Unknown
from sidecar.stores.sqlite import SqliteStore
from sidecar.stores.sqlite_file import Database

from .store_cases import Child, all_seqs, fill, first, new_owner, said, unit

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, busy_seconds=0.2)
    await store.open(new_owner())
    yield store
    await store.close()


async def test_a_database_that_stays_busy_is_unavailable_and_recovers(path: Path, store: SqliteStore) -> None:
    lease = await store.create("s", first("s"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = unit("s", lease.epoch, 0)
    with pytest.raises(Unavailable) as refusal:
        await store.commit(waiting)
    assert refusal.value.busy
    assert (await store.load("s")).seq == 0, "reading does not wait for a writer"
    other.execute("ROLLBACK")
    other.close()
    assert await store.commit(waiting) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        IS_ROOT
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("cannot mount a small disk here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def to_the_brim(disk: Path) -> Path:
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return ballast


async def test_a_full_disk_is_told_and_saving_resumes_when_space_returns(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "sessions.db")
    await store.open(new_owner())
    lease = await store.create("s", first("s"))
    await store.commit(said("s", lease.epoch, 0, "m0"))
    ballast = to_the_brim(small_disk)

    last = said("s", lease.epoch, 1, "m1", b"x" * 100_000)
    with pytest.raises(Unavailable) as refusal:
        await store.commit(last)
    assert not refusal.value.busy
    assert (await store.load("s")).seq == 1

    os.unlink(ballast)

    assert await store.commit(last) == 2
    assert await all_seqs(store, "s") == [1, 2]
    await store.close()


async def test_a_disk_too_full_for_one_unit_still_takes_its_neighbours(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "sessions.db")
    await store.open(new_owner())
    for n in range(8):
        await store.create(f"s{n}", first(f"s{n}"))
    units = [said(f"s{n}", 1, 0, "m", b"x" * (3 << 20) if n == 3 else b"x") for n in range(8)]
    results = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    assert [type(result) for result in results] == [int] * 3 + [Unavailable] + [int] * 4
    await store.close()


async def test_a_full_disk_at_the_start_is_unavailable(small_disk: Path) -> None:
    to_the_brim(small_disk)
    with pytest.raises(Unavailable):
        await SqliteStore(small_disk / "sessions.db").open(new_owner())


def test_a_read_only_disk_is_unavailable(small_disk: Path) -> None:
    asyncio.run(fill(small_disk / "sessions.db"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(Unavailable):
        asyncio.run(SqliteStore(small_disk / "sessions.db").open(new_owner()))


class Failing(sqlite3.Connection):
    """Fails the statements that a test names, as SQLite does when the disk fails."""

    failing = ""
    code = sqlite3.SQLITE_IOERR

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self.fail(sql)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        self.fail(sql)
        return super().executemany(sql, parameters)

    def fail(self, sql: str) -> None:
        if Failing.failing and sql.startswith(Failing.failing):
            error = sqlite3.OperationalError("the disk fails")
            error.sqlite_errorcode = Failing.code
            raise error


@pytest.mark.parametrize(
    ("statement", "code", "told"),
    [
        ("COMMIT", sqlite3.SQLITE_IOERR, Unknown),
        ("COMMIT", sqlite3.SQLITE_FULL, Unavailable),
        ("BEGIN IMMEDIATE", sqlite3.SQLITE_IOERR, Unavailable),
        ("BEGIN IMMEDIATE", sqlite3.SQLITE_READONLY, Unavailable),
        ("INSERT INTO events", sqlite3.SQLITE_FULL, Unavailable),
        ("UPDATE sessions", sqlite3.SQLITE_IOERR, Unavailable),
        ("SAVEPOINT", sqlite3.SQLITE_NOMEM, int),
    ],
)
async def test_nothing_is_acknowledged_by_a_failing_disk_and_saving_resumes(
    path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, code: int, told: type
) -> None:
    real = sqlite3.connect
    monkeypatch.setattr("sidecar.stores.sqlite_file.sqlite3.connect", lambda *a, **k: real(*a, **k, factory=Failing))
    monkeypatch.setattr(Failing, "failing", "")
    monkeypatch.setattr(Failing, "code", code)
    store = SqliteStore(path)
    await store.open(new_owner())
    for n in range(4):
        await store.create(f"s{n}", first(f"s{n}"))
    units = [unit(f"s{n}", 1, 0, PutMessage("m", None, b"1")) for n in range(4)]

    Failing.failing = statement
    results = await asyncio.gather(*map(store.commit, units), return_exceptions=True)
    assert {type(result) for result in results} == {told}
    Failing.failing = ""

    assert await asyncio.gather(*map(store.commit, units)) == [1] * 4
    for n in range(4):
        snapshot = await store.load(f"s{n}")
        assert (snapshot.seq, snapshot.message_count) == (1, 1)
    await store.close()


async def test_a_full_file_is_told_and_saving_resumes_when_it_may_grow(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[sqlite3.Connection] = []
    real = Database.connect

    def connect(database: Database) -> sqlite3.Connection:
        connections.append(real(database))
        return connections[-1]

    monkeypatch.setattr(Database, "connect", connect)
    store = SqliteStore(path)
    await store.open(new_owner())
    await store.create("s", first("s"))
    last = said("s", 1, 0, "m", b"x" * 50_000)

    connections[0].execute("PRAGMA max_page_count = 1")  # SQLite makes it what the file has already
    with pytest.raises(Unavailable):
        await store.commit(last)
    assert await all_seqs(store, "s") == []
    connections[0].execute("PRAGMA max_page_count = 1000000")

    assert await store.commit(last) == 1
    await store.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to make syncs fail")
async def test_a_sync_that_fails_acknowledges_nothing_and_the_same_unit_is_saved_after(path: Path) -> None:
    await fill(path)
    inject = "inject=fsync,fdatasync:error=EIO:when=6+2"
    child = Child(path, prefix=["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", inject])
    try:
        if child.ask("open") is None:
            pytest.skip("strace may not trace here")
        epoch, seq, _ = child.ask("acquire", "s0")
        refused = 0
        for number in range(seq, seq + 12):
            for _ in range(4):
                child.send("fill", "s0", epoch, number, 1)
                if (answer := child.receive()) == number + 1:
                    assert child.receive() == "filled"
                    break
                assert answer in ("Unknown", "Unavailable")
                refused += 1
            else:
                pytest.fail("saving did not resume")
        assert refused
    finally:
        child.kill()
    store = SqliteStore(path)
    await store.open(new_owner())
    assert await all_seqs(store, "s0") == list(range(1, seq + 13))
    await store.close()
