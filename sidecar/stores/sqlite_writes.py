"""A session's leases and units: functions of a connection that stands in a transaction, which is somebody else's."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from . import ownership
from .base import Exists, Fenced, Lease, Locked, Missing, Owner, Refused, Unit
from .rules import REMEMBERED_UNITS, admit, referenced
from .sqlite_memory_writes import put_memory
from .sqlite_rows import put_event_rows, put_row
from .sqlite_schema import DELETE_SESSION


@dataclass(slots=True)
class _Head:
    id: int
    epoch: int
    seq: int
    first_seq: int
    last_position: int
    owner: str | None
    units: str

    def written(self) -> dict[str, int]:
        """Remembered unit ids, with the seq that each reached."""
        pairs = (line.split(" ", 1) for line in self.units.split("\n") if line)
        return {unit: int(seq) for seq, unit in pairs}

    def remember(self, unit: str) -> None:
        """Note that a unit brought the session to `seq`."""
        newest_first = [f"{self.seq} {unit}", *self.units.split("\n", REMEMBERED_UNITS - 1)[: REMEMBERED_UNITS - 1]]
        self.units = "\n".join(newest_first).rstrip("\n")


def create(
    connection: sqlite3.Connection, session: str, first: Unit, key: str | None, owner: Owner, owners: Path
) -> Lease:
    """Write a session's first unit, or answer the retry of it.

    Raises:
        Exists: the id is taken.
        Locked: it is a retry, and another process has the session by now.
    """
    head = _head(connection, session)
    if head is not None:
        if key is not None and key == _create_key(connection, head.id):
            return acquire(connection, session, owner, owners)
        if head.owner == owner.id and head.epoch == first.epoch and first.id in head.written():
            return Lease(session, owner.id, head.epoch, head.seq)
        raise Exists(f"there is a session {session!r} already")
    cursor = connection.execute(
        "INSERT INTO sessions (session, create_key, epoch, seq, first_seq, last_position, units,"
        " owner_id, owner_pid, owner_since) VALUES (?, ?, 1, 0, 1, 0, '', ?, ?, ?)",
        (session, key, owner.id, owner.pid, owner.since),
    )
    head = _Head(cursor.lastrowid or 0, 1, 0, 1, 0, owner.id, "")
    return Lease(session, owner.id, 1, _write(connection, head, first))


def acquire(connection: sqlite3.Connection, session: str, owner: Owner, owners: Path) -> Lease:
    """Take a session that no other living process has.

    Raises:
        Missing: there is no such session.
        Locked: another process has it.
    """
    row = connection.execute(
        "SELECT id, epoch, seq, owner_id, owner_pid, owner_since FROM sessions WHERE session = ?", (session,)
    ).fetchone()
    if row is None:
        raise Missing(f"there is no session {session!r}")
    id_, epoch, seq, owner_id, owner_pid, owner_since = row
    if owner_id == owner.id:
        return Lease(session, owner.id, epoch, seq)
    if owner_id is not None:
        if ownership.is_alive(owners, owner_id):
            raise Locked(session, owner_pid, owner_since)
        ownership.remove(owners, owner_id)
    connection.execute(
        "UPDATE sessions SET epoch = ?, owner_id = ?, owner_pid = ?, owner_since = ?, units = '' WHERE id = ?",
        (epoch + 1, owner.id, owner.pid, owner.since, id_),
    )
    return Lease(session, owner.id, epoch + 1, seq, took_over=owner_id is not None)


def release(connection: sqlite3.Connection, lease: Lease) -> None:
    """Give a session up, if the lease still holds it."""
    connection.execute(
        "UPDATE sessions SET owner_id = NULL, owner_pid = NULL, owner_since = NULL"
        " WHERE session = ? AND epoch = ? AND owner_id = ?",
        (lease.session, lease.epoch, lease.owner),
    )


def release_all(connection: sqlite3.Connection, owner: str) -> None:
    """Give up every session that an owner holds."""
    connection.execute(
        "UPDATE sessions SET owner_id = NULL, owner_pid = NULL, owner_since = NULL WHERE owner_id = ?", (owner,)
    )


def commit(connection: sqlite3.Connection, unit: Unit, owner: str) -> int:
    """Write a unit, or answer the retry of one.

    Raises:
        Missing: there is no such session.
        Fenced, SeqConflict, Refused: as the names say.
    """
    head = _head(connection, unit.session)
    if head is None:
        raise Missing(f"there is no session {unit.session!r}")
    written = head.written() if unit.id in head.units else {}
    answer = admit(unit, epoch=head.epoch, seq=head.seq, mine=head.owner == owner, written=written)
    return _write(connection, head, unit) if answer is None else answer


def delete(connection: sqlite3.Connection, lease: Lease) -> None:
    """Remove a session.

    Raises:
        Fenced: the lease does not hold it any more.
    """
    head = _head(connection, lease.session)
    if head is None:
        return
    if (head.epoch, head.owner) != (lease.epoch, lease.owner):
        raise Fenced(f"session {lease.session!r} is not held by this lease any more")
    for statement in DELETE_SESSION:
        connection.execute(statement, (head.id,))


def _head(connection: sqlite3.Connection, session: str) -> _Head | None:
    row = connection.execute(
        "SELECT id, epoch, seq, first_seq, last_position, owner_id, units FROM sessions WHERE session = ?", (session,)
    ).fetchone()
    return None if row is None else _Head(*row)


def _create_key(connection: sqlite3.Connection, id_: int) -> str | None:
    key: str | None = connection.execute("SELECT create_key FROM sessions WHERE id = ?", (id_,)).fetchone()[0]
    return key


def _write(connection: sqlite3.Connection, head: _Head, unit: Unit) -> int:
    for put in unit.puts:
        head.last_position += put_row(connection, head.id, unit.session, put, head.last_position + 1)
    for message_id in referenced(unit):
        found = connection.execute("SELECT 1 FROM messages WHERE id = ? AND message_id = ?", (head.id, message_id))
        if found.fetchone() is None:
            raise Refused(f"an event refers to message {message_id!r}, which is not stored")
    if unit.events:
        put_event_rows(connection, head.id, unit.events)
        head.seq = unit.events[-1].seq
    if unit.prune_through >= head.first_seq:
        head.first_seq = min(unit.prune_through, head.seq) + 1
        connection.execute("DELETE FROM events WHERE id = ? AND seq < ?", (head.id, head.first_seq))
    for write in unit.memory:
        put_memory(connection, write)
    head.remember(unit.id)
    connection.execute(
        "UPDATE sessions SET seq = ?, first_seq = ?, last_position = ?, units = ? WHERE id = ?",
        (head.seq, head.first_seq, head.last_position, head.units, head.id),
    )
    return head.seq
