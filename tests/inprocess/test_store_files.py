"""Whose file the SQLite store opens, and with which modes its own files come to be."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.stores.base import Foreign, SessionQuery, Unavailable
from sidecar.stores.sqlite import SqliteStore
from sidecar.stores.sqlite_file import Database

from .store_cases import ROOT, change, contents, fill, first, new_owner, scaled, unit

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


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
    named = connection.execute("SELECT version, name FROM schema_migrations").fetchall()
    assert named == [(1, "sessions"), (2, "memories")]
    connection.close()


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
