"""The SQLite store and its file: modes, files that are not its own, damage, full disks and other trouble."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.base import Damaged, Foreign, PutMessage, PutState, SessionQuery, Unavailable, Unknown
from sidecar.stores.sqlite import SqliteStore
from sidecar.stores.sqlite_file import Database

from .store_cases import ROOT, Child, all_seqs, first, new_owner, said, scaled, unit

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


async def fill(path: Path, sessions: int = 1, messages: int = 1, body: bytes = b'"hi"') -> None:
    store = SqliteStore(path, durability="normal")
    await store.open(new_owner())
    for n in range(sessions):
        lease = await store.create(f"s{n}", first(f"s{n}"))
        for m in range(messages):
            await store.commit(said(lease.session, 1, m, f"m{m}", body))
    await store.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() if entry.is_file() else b"" for entry in folder.iterdir()}


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def overwrite(path: Path, whole: bytes, changes: dict[int, bytes]) -> None:
    damaged = bytearray(whole)
    for start, piece in changes.items():
        damaged[start : start + len(piece)] = piece
    path.write_bytes(damaged[: len(whole)])


# Files that are not ours.


def foreign_database(path: Path) -> None:
    change(path, "CREATE TABLE bookmarks (url TEXT)")


def foreign_wal_database(path: Path) -> None:
    change(path, "PRAGMA journal_mode = WAL")
    change(path, "CREATE TABLE bookmarks (url TEXT)")


def foreign_application(path: Path) -> None:
    change(path, "PRAGMA application_id = 77")


def text(path: Path) -> None:
    path.write_bytes(b"dear diary\n" * 50)


def cut_header(path: Path) -> None:
    path.write_bytes(b"SQLite f")


@pytest.mark.parametrize("make", [foreign_database, foreign_wal_database, foreign_application, text, cut_header])
@pytest.mark.parametrize("migrate", [True, False])
async def test_a_file_that_is_not_ours_is_refused_untouched(path: Path, make: object, migrate: bool) -> None:
    assert callable(make)
    make(path)
    before = contents(path.parent)
    with pytest.raises(Foreign):
        await SqliteStore(path).open(new_owner(), migrate=migrate)
    assert contents(path.parent) == before


async def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    await fill(path)
    change(path, "PRAGMA user_version = 99")
    before = contents(path.parent)
    with pytest.raises(Foreign, match="schema 99"):
        await SqliteStore(path).open(new_owner())
    assert contents(path.parent) == before


async def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(Foreign):
        await SqliteStore(tmp_path).open(new_owner())


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
async def test_a_store_of_another_user_is_refused_untouched(path: Path) -> None:
    await fill(path)
    os.chown(path, 12345, 12345)
    before = contents(path.parent)
    with pytest.raises(Foreign, match="somebody else"):
        await SqliteStore(path).open(new_owner())
    assert contents(path.parent) == before


async def test_a_store_that_is_missing_is_not_created_where_migrating_is_not_allowed(path: Path) -> None:
    with pytest.raises(Unavailable):
        await SqliteStore(path).open(new_owner(), migrate=False)
    assert not list(path.parent.iterdir())


def test_an_empty_file_becomes_a_private_store(path: Path) -> None:
    path.touch(0o644)
    asyncio.run(fill(path))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_migrations_of_a_store_are_named_in_it(path: Path) -> None:
    await fill(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version, name FROM schema_migrations").fetchall() == [(1, "sessions")]
    connection.close()


# Damage.


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


# Modes.

WATCH_MODES = """
import asyncio, json, os, sys
from pathlib import Path
from sidecar.stores.sqlite import SqliteStore
from tests.inprocess.store_cases import first, new_owner, unit

os.umask(0)
found = set()

def look(event, args):
    # Every audited call is a moment at which another user might look.
    for at, folders, files in os.walk(Path(sys.argv[1])):
        found.update((Path(at, name).name, oct(Path(at, name).stat().st_mode & 0o777)) for name in folders)
        for name in files:
            try:
                found.add((name.rpartition("-")[2] if "db-" in name else Path(name).suffix,
                    oct(Path(at, name).stat().st_mode & 0o777)))
            except FileNotFoundError:
                pass

async def main():
    store = SqliteStore(Path(sys.argv[1], "a", "b", "sessions.db"))
    await store.open(new_owner())
    await store.create("s", first("s"))
    for seq in range(3):
        await store.commit(unit("s", 1, seq))
        look("", ())
    await store.load("s")
    await store.close()
    look("", ())

busy = False
def hook(event, args):
    global busy
    if not busy and event in ("open", "os.mkdir", "os.rename", "os.chmod", "sqlite3.connect", "os.remove"):
        busy = True
        look(event, args)
        busy = False
sys.addaudithook(hook)
asyncio.run(main())
print(json.dumps(sorted(found)))
"""


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_files_and_folders_are_private_at_every_instant_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", WATCH_MODES, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found: set[tuple[str, str]] = set(map(tuple, json.loads(ran.stdout)))
    folders = {("a", "0o700"), ("b", "0o700"), ("sessions.db.owners", "0o700")}
    files = {(kind, "0o600") for kind in (".db", "wal", "shm", ".lock", ".new")}
    assert found - {("journal", "0o600")} == folders | files  # the journal is there for a moment only
    assert tmp_path.stat().st_mode & 0o777 == 0o755, "a folder that was there before was changed"


# Trouble while writing.


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


def test_a_reading_connection_cannot_write(path: Path) -> None:
    database = Database(path)
    database.prepare(create=True)
    connection = database.connect_reader()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("CREATE TABLE t (x)")
    connection.close()


async def test_many_openings_in_one_process_share_the_file(path: Path) -> None:
    for _ in range(scaled(3)):
        stores = [SqliteStore(path) for _ in range(3)]
        for store in stores:
            await store.open(new_owner())
        lease = await stores[0].acquire("s") if (await stores[0].list(SessionQuery(), None, 1)).items else None
        if lease is None:
            lease = await stores[0].create("s", first("s"))
        await stores[0].commit(unit("s", lease.epoch, lease.seq))
        for store in stores[1:]:
            await store.close()
        await stores[0].commit(unit("s", lease.epoch, lease.seq + 1))
        await stores[0].close()
