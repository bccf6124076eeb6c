"""What is read of one session: functions of a connection that stands in a read transaction. They write nothing.

Every row is compared with its seal and every sequence with its numbers, so that a damaged session is reported as
damaged and never as a shorter one.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .base import (
    CallRecord,
    Damaged,
    Event,
    Missing,
    Owner,
    Page,
    RunRecord,
    Snapshot,
    StoredEvent,
    StoredMessage,
)
from .paging import cut
from .sqlite_rows import event_seal, message_seal, seal

OwnerOf = Callable[[str | None, int, str], Owner | None]
"""From a row's owner columns to the owner, if it is alive."""

_EVENTS: Final = (
    "SELECT e.seq, e.type, e.time, e.data, e.run_id, e.message_id, e.seal,"
    " m.position, m.message_id, m.run_id, m.body, m.in_history, m.seal"
    " FROM events e LEFT JOIN messages m ON m.id = e.id AND m.message_id = e.message_id"
    " WHERE e.id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?"
)
_MESSAGES: Final = "SELECT position, message_id, run_id, body, in_history, seal FROM messages WHERE id = ?"
_FORWARD: Final = _MESSAGES + " AND position >= ? ORDER BY position"
_BACKWARD: Final = _MESSAGES + " AND position <= ? ORDER BY position DESC"
_RUN_FORWARD: Final = _MESSAGES + " AND run_id = ? AND position >= ? ORDER BY position"
_RUN_BACKWARD: Final = _MESSAGES + " AND run_id = ? AND position <= ? ORDER BY position DESC"


def snapshot(connection: sqlite3.Connection, session: str, owner_of: OwnerOf) -> Snapshot:
    """Everything of a session but messages and events.

    Raises:
        Missing: there is no such session.
        Damaged: some of it does not read back.
    """
    id_ = _find(connection, session)
    epoch, seq, first_seq, last_position, *owner = connection.execute(
        "SELECT epoch, seq, first_seq, last_position, owner_id, owner_pid, owner_since FROM sessions WHERE id = ?",
        (id_,),
    ).fetchone()
    check = _Checker(connection, session, id_)
    check.numbers(seq, first_seq, last_position)
    record = connection.execute("SELECT body, updated_at, seal FROM records WHERE id = ?", (id_,)).fetchone()
    check.that(record is not None, "its record is gone")
    check.sealed(record[2], record[0], session, record[1])
    in_history: int = connection.execute(
        "SELECT count(*) FROM messages WHERE id = ? AND in_history = 1", (id_,)
    ).fetchone()[0]
    return Snapshot(
        session=session,
        body=record[0],
        state=_bodies(check, connection.execute("SELECT key, value, seal FROM state WHERE id = ?", (id_,))),
        seq=seq,
        first_seq=first_seq,
        epoch=epoch,
        owner=owner_of(*owner),
        unfinished_runs=[
            _run(check, row)
            for row in connection.execute(
                "SELECT run_id, body, ended, seal FROM runs WHERE id = ? AND ended = 0 ORDER BY rowid", (id_,)
            )
        ],
        open_calls=[
            _call(check, row)
            for row in connection.execute(
                "SELECT call_id, run_id, body, open, seal FROM calls WHERE id = ? AND open = 1 ORDER BY rowid", (id_,)
            )
        ],
        requests=_bodies(check, connection.execute("SELECT request_id, body, seal FROM requests WHERE id = ?", (id_,))),
        message_count=in_history,
    )


def find_run(connection: sqlite3.Connection, session: str, run_id: str) -> RunRecord | None:
    """A run's record.

    Raises:
        Missing: there is no such session.
        Damaged: the record does not read back.
    """
    id_ = _find(connection, session)
    row = connection.execute(
        "SELECT run_id, body, ended, seal FROM runs WHERE id = ? AND run_id = ?", (id_, run_id)
    ).fetchone()
    return None if row is None else _run(_Checker(connection, session, id_), row)


def events(connection: sqlite3.Connection, session: str, after: int, limit: int, max_bytes: int) -> Page[StoredEvent]:
    """A page of events, with the messages that they refer to.

    Raises:
        Missing: there is no such session.
        Damaged: an event, or its message, is gone or does not read back.
    """
    id_ = _find(connection, session)
    check = _Checker(connection, session, id_)
    seq, first_seq = connection.execute("SELECT seq, first_seq FROM sessions WHERE id = ?", (id_,)).fetchone()
    start = max(after, first_seq - 1)
    rows = connection.execute(_EVENTS, (id_, start, max(limit, 1) + 1))
    taken, more = cut(map(check.event, rows), limit, max_bytes, lambda e: len(e.event.data) + len(e.message or b""))
    for expected, item in enumerate(taken, start + 1):
        check.that(item.event.seq == expected, f"event {expected} is gone")
    last = taken[-1].event.seq if taken else start
    check.that(more or last >= seq, f"event {last + 1} is gone")
    return Page(taken, str(last) if more else None)


def messages(
    connection: sqlite3.Connection,
    session: str,
    *,
    after: int | None,
    limit: int,
    max_bytes: int,
    newest_first: bool,
    run_id: str | None,
    hidden: bool,
) -> Page[StoredMessage]:
    """A page of the transcript.

    Raises:
        Missing: there is no such session.
        Damaged: a message is gone or does not read back.
    """
    id_ = _find(connection, session)
    check = _Checker(connection, session, id_)
    (last,) = connection.execute("SELECT last_position FROM sessions WHERE id = ?", (id_,)).fetchone()
    if newest_first:
        start, step, end = (last if after is None else max(min(after - 1, last), 0)), -1, 0
    else:
        start, step, end = min(after or 0, last) + 1, 1, last + 1
    if run_id is None:
        rows = connection.execute(_BACKWARD if newest_first else _FORWARD, (id_, start))
        found = check.whole(map(check.message, rows), start, step, end)
    else:
        rows = connection.execute(_RUN_BACKWARD if newest_first else _RUN_FORWARD, (id_, run_id, start))
        found = map(check.message, rows)
    # What is hidden is left out only here, so that a changed byte cannot hide a message.
    shown = (message for message in found if hidden or message.in_history)
    taken, more = cut(shown, limit, max_bytes, lambda message: len(message.body))
    return Page(taken, str(taken[-1].position) if more else None)


class _Checker:
    """Compares what is read of one session with what was written."""

    def __init__(self, connection: sqlite3.Connection, session: str, id_: int) -> None:
        self._connection = connection
        self._session = session
        self._id = id_

    def that(self, holds: bool, otherwise: str) -> None:
        """Raise `Damaged` unless it holds."""
        if not holds:
            raise Damaged(self._session, otherwise, _survey(self._connection, self._id))

    def sealed(self, expected: int, body: bytes, *keys: str | int | None) -> None:
        """Compare a row with its seal."""
        self.that(seal(body, *keys) == expected, "a row does not match its checksum")

    def numbers(self, seq: int, first_seq: int, last_position: int) -> None:
        """Compare the counts of events and messages with the counters that were written along."""
        kept, oldest, newest = self._connection.execute(
            "SELECT count(*), min(seq), max(seq) FROM events WHERE id = ?", (self._id,)
        ).fetchone()
        self.that(kept == seq - first_seq + 1, f"{seq - first_seq + 1} events are kept, {kept} are there")
        self.that(not kept or (oldest, newest) == (first_seq, seq), "its events are not numbered without a hole")
        positions, last = self._connection.execute(
            "SELECT count(*), max(position) FROM messages WHERE id = ?", (self._id,)
        ).fetchone()
        self.that(
            positions == (last or 0) == last_position, f"{last_position} messages are kept, {positions} are there"
        )

    def whole(self, messages: Iterable[StoredMessage], start: int, step: int, end: int) -> Iterator[StoredMessage]:
        """Pass messages on; none may be missing between `start` and `end`."""
        expected = start
        for message in messages:
            self.that(message.position == expected, f"message {expected} is gone")
            expected += step
            yield message
        self.that(expected == end, f"message {expected} is gone")

    def event(self, row: tuple[Any, ...]) -> StoredEvent:
        """A row of `_EVENTS`."""
        *columns, event_sum = row[:7]
        event = Event(*columns)
        self.that(event_seal(event) == event_sum, f"event {event.seq} does not match its checksum")
        if event.message_id is None:
            return StoredEvent(event, None)
        self.that(row[8] == event.message_id, f"the message of event {event.seq} is gone")
        return StoredEvent(event, self.message(row[7:]).body)

    def message(self, row: tuple[Any, ...]) -> StoredMessage:
        """A row of `_MESSAGES`."""
        position, message_id, run_id, body, in_history, total = row
        message = StoredMessage(position, message_id, run_id, body, bool(in_history))
        self.that(message_seal(message) == total, f"message {position} does not match its checksum")
        return message


def _find(connection: sqlite3.Connection, session: str) -> int:
    row = connection.execute("SELECT id FROM sessions WHERE session = ?", (session,)).fetchone()
    if row is not None:
        id_: int = row[0]
        return id_
    if connection.execute("SELECT 1 FROM records WHERE session = ?", (session,)).fetchone() is not None:
        raise Damaged(session, "its first row is gone", {})
    raise Missing(f"there is no session {session!r}")


def _bodies(check: _Checker, rows: Iterable[tuple[str, bytes, int]]) -> dict[str, bytes]:
    bodies: dict[str, bytes] = {}
    for key, body, total in rows:
        check.sealed(total, body, key)
        bodies[key] = body
    return bodies


def _run(check: _Checker, row: tuple[str, bytes, int, int]) -> RunRecord:
    run_id, body, ended, total = row
    check.sealed(total, body, run_id, ended)
    return RunRecord(run_id, body, bool(ended))


def _call(check: _Checker, row: tuple[str, str, bytes, int, int]) -> CallRecord:
    call_id, run_id, body, open_, total = row
    check.sealed(total, body, run_id, call_id, open_)
    return CallRecord(call_id, run_id, body, bool(open_))


def _survey(connection: sqlite3.Connection, id_: int) -> dict[str, int]:
    """How many messages and events still read back, as far as the file can be read."""
    saved = {"messages": 0, "events": 0}
    try:
        for position, message_id, run_id, body, in_history, total in connection.execute(_FORWARD, (id_, 1)):
            message = StoredMessage(position, message_id, run_id, body, bool(in_history))
            saved["messages"] += message_seal(message) == total
        for *columns, total in connection.execute(
            "SELECT seq, type, time, data, run_id, message_id, seal FROM events WHERE id = ?", (id_,)
        ):
            saved["events"] += event_seal(Event(*columns)) == total
    except (sqlite3.DatabaseError, TypeError):
        return saved
    return saved
