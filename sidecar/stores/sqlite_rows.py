"""How a unit's puts and events become rows, each sealed with a checksum. No rules about who may write."""

import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import replace

from .base import (
    Event,
    HideRun,
    Put,
    PutCall,
    PutMessage,
    PutRequest,
    PutRun,
    PutSession,
    PutState,
    Refused,
    StoredMessage,
)


def seal(body: bytes, *keys: str | int | None) -> int:
    """A checksum over what belongs together in a row, so that a changed byte is seen when it is read."""
    return zlib.crc32("\0".join(map(str, keys)).encode(), zlib.crc32(body))


def put_row(connection: sqlite3.Connection, id_: int, session: str, put: Put, next_position: int) -> int:
    """Write what one put says; returns how many positions of the transcript it took.

    Raises:
        Refused: it is no put, or its values have other types than declared.
    """
    match put:
        case PutMessage():
            return _put_message(connection, id_, put, next_position)
        case HideRun(run_id):
            _hide_run(connection, id_, run_id)
        case PutState(key, None):
            connection.execute("DELETE FROM state WHERE id = ? AND key = ?", (id_, key))
        case PutState(key, bytes(value)):
            connection.execute(
                "INSERT OR REPLACE INTO state (id, key, value, seal) VALUES (?, ?, ?, ?)",
                (id_, key, value, seal(value, key)),
            )
        case PutRun(run_id, body, ended):
            connection.execute(
                "INSERT INTO runs (id, run_id, ended, body, seal) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id, run_id)"
                " DO UPDATE SET ended = excluded.ended, body = excluded.body, seal = excluded.seal",
                (id_, run_id, ended, body, seal(body, run_id, int(ended))),
            )
        case PutCall(call_id, run_id, body, open_):
            connection.execute(
                "INSERT INTO calls (id, run_id, call_id, open, body, seal) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (id, run_id, call_id)"
                " DO UPDATE SET open = excluded.open, body = excluded.body, seal = excluded.seal",
                (id_, run_id, call_id, open_, body, seal(body, run_id, call_id, int(open_))),
            )
        case PutRequest(request_id, None):
            connection.execute("DELETE FROM requests WHERE id = ? AND request_id = ?", (id_, request_id))
        case PutRequest(request_id, bytes(body)):
            connection.execute(
                "INSERT OR REPLACE INTO requests (id, request_id, body, seal) VALUES (?, ?, ?, ?)",
                (id_, request_id, body, seal(body, request_id)),
            )
        case PutSession():
            connection.execute(
                "INSERT OR REPLACE INTO records (id, session, updated_at, cwd, archived, folded_title, folded_session,"
                " body, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(id_, session, put.updated_at, put.cwd, put.archived),
                    *(
                        (put.title or "").casefold(),
                        session.casefold(),
                        put.body,
                        seal(put.body, session, put.updated_at),
                    ),
                ),
            )
        case _:
            raise Refused(f"a {type(put).__name__} like this cannot be stored")
    return 0


def put_event_rows(connection: sqlite3.Connection, id_: int, events: Sequence[Event]) -> None:
    """Write events, which are numbered already."""
    connection.executemany(
        "INSERT INTO events (id, seq, type, time, run_id, message_id, data, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(id_, e.seq, e.type, e.time, e.run_id, e.message_id, e.data, event_seal(e)) for e in events],
    )


def event_seal(event: Event) -> int:
    """The checksum of an event's row."""
    return seal(event.data, event.seq, event.type, event.time, event.run_id, event.message_id)


def message_seal(message: StoredMessage) -> int:
    """The checksum of a message's row."""
    in_history = int(message.in_history)
    return seal(message.body, message.position, message.message_id, message.run_id, in_history)


def _put_message(connection: sqlite3.Connection, id_: int, put: PutMessage, next_position: int) -> int:
    message = StoredMessage(next_position, put.message_id, put.run_id, put.body, put.in_history)
    added = connection.execute(
        "INSERT INTO messages (id, position, message_id, run_id, in_history, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id, message_id) DO NOTHING",
        (id_, next_position, put.message_id, put.run_id, put.in_history, put.body, message_seal(message)),
    )
    if not added.rowcount:
        (position,) = connection.execute(
            "SELECT position FROM messages WHERE id = ? AND message_id = ?", (id_, put.message_id)
        ).fetchone()
        _rewrite_message(connection, id_, replace(message, position=position))
    return added.rowcount


def _hide_run(connection: sqlite3.Connection, id_: int, run_id: str) -> None:
    for row in connection.execute(
        "SELECT position, message_id, run_id, body FROM messages WHERE id = ? AND run_id = ?", (id_, run_id)
    ).fetchall():
        _rewrite_message(connection, id_, StoredMessage(*row, in_history=False))


def _rewrite_message(connection: sqlite3.Connection, id_: int, message: StoredMessage) -> None:
    connection.execute(
        "UPDATE messages SET run_id = ?, in_history = ?, body = ?, seal = ? WHERE id = ? AND position = ?",
        (message.run_id, message.in_history, message.body, message_seal(message), id_, message.position),
    )
