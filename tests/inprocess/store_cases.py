"""What the tests of stores share: units, owners, and a child process that has the same store open. No tests."""

import json
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidecar.stores.base import Event, Owner, Put, PutMessage, PutSession, SessionStore, Unit
from sidecar.stores.memory import MemoryStore
from sidecar.stores.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
SCALE = float(os.environ.get("AGENT_SIDECAR_TEST_SCALE", "1"))
TIME = "2026-01-01T00:00:00.000Z"


def scaled(count: int) -> int:
    return max(1, round(count * SCALE))


def new_owner(since: str = TIME) -> Owner:
    return Owner(uuid.uuid4().hex, os.getpid(), since)


def first(session: str, *puts: Put, updated_at: str = TIME, title: str | None = None, cwd: str | None = None) -> Unit:
    record = PutSession(b'{"of": "%s"}' % session.encode(), updated_at, title=title, cwd=cwd)
    return Unit(uuid.uuid4().hex, session, 1, 0, puts=(record, *puts))


def unit(session: str, epoch: int, seq: int, *puts: Put, events: int = 1, **fields: Any) -> Unit:
    numbered = [Event(n, "warning", TIME, b'{"n": %d}' % n) for n in range(seq + 1, seq + 1 + events)]
    return Unit(uuid.uuid4().hex, session, epoch, seq, events=numbered, puts=puts, **fields)


def said(session: str, epoch: int, seq: int, message_id: str, body: bytes = b'"hi"', run_id: str | None = None) -> Unit:
    event = Event(seq + 1, "message.completed", TIME, b"{}", run_id, message_id)
    return Unit(uuid.uuid4().hex, session, epoch, seq, [event], [PutMessage(message_id, run_id, body)])


async def all_seqs(store: SessionStore, session: str) -> list[int]:
    found: list[int] = []
    after = 0
    while True:
        page = await store.events(session, after, limit=7, max_bytes=1 << 20)
        found += [item.event.seq for item in page.items]
        if page.next is None:
            return found
        after = int(page.next)


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


class Place:
    """Data that several openings in a row see, as a process that starts again does."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.path = folder / "sessions.db"
        self._memory = MemoryStore(max_unit_bytes=1 << 20) if kind == "memory" else None
        self._opened: list[SessionStore] = []

    async def open(self) -> SessionStore:
        store = self._memory or SqliteStore(self.path, durability="normal", max_unit_bytes=1 << 20)
        await store.open(new_owner())
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class Child:
    """A process with a store of its own on the same file, which does what it is told, one line at a time."""

    def __init__(self, path: Path, crash_at: str = "", since: str = TIME, prefix: Sequence[str] = ()) -> None:
        env = {**os.environ, "AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": crash_at}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.inprocess.store_child", str(path), since],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, do: str, *args: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([do, *args]) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The answer to the oldest line that was sent; `None` once the process has died."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, do: str, *args: object) -> Any:
        self.send(do, *args)
        return self.receive()

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> int:
        self.process.communicate(timeout=30)
        return self.process.returncode


def end_all(children: Sequence[Child]) -> None:
    for child in children:
        if child.process.returncode is None:
            child.kill()
