"""What is read across sessions: the list of them. Functions of a reading connection."""

import sqlite3
from typing import Any, Final

from .base import Damaged, Page, SessionQuery, SessionRow
from .paging import cut, encode_cursor
from .sqlite_reads import OwnerOf
from .sqlite_rows import seal

# A condition whose parameter is NULL takes every row. The cursor's pair is compared as one value, so that the index
# on it gives the order.
_SESSIONS: Final = """
SELECT r.session, r.body, r.seal, s.seq, r.updated_at, s.owner_id, s.owner_pid, s.owner_since,
    EXISTS (SELECT 1 FROM runs WHERE runs.id = r.id AND ended = 0),
    EXISTS (SELECT 1 FROM requests WHERE requests.id = r.id)
FROM records r LEFT JOIN sessions s ON s.id = r.id
WHERE (r.updated_at, r.session) < (:updated_at, :session)
    AND (:archived IS NULL OR r.archived = :archived)
    AND (:text IS NULL OR instr(r.folded_title, :text) OR instr(r.folded_session, :text))
"""
_ORDER: Final = " ORDER BY r.updated_at DESC, r.session DESC LIMIT :limit"
_EVERYWHERE: Final = _SESSIONS + _ORDER
_IN_CWD: Final = _SESSIONS + " AND r.cwd = :cwd" + _ORDER

_AFTER_ALL: Final = ("\U0010ffff", "")
"""Sorts behind every time."""


def sessions(
    connection: sqlite3.Connection,
    query: SessionQuery,
    after: tuple[str, str] | None,
    limit: int,
    max_bytes: int,
    owner_of: OwnerOf,
) -> Page[SessionRow]:
    """A page of sessions, newest first; `after` is what a cursor holds.

    Raises:
        Damaged: a record does not read back.
    """
    updated_at, session = after or _AFTER_ALL
    rows = connection.execute(
        _EVERYWHERE if query.cwd is None else _IN_CWD,
        {
            "updated_at": updated_at,
            "session": session,
            "archived": query.archived,
            "text": None if query.text is None else query.text.casefold(),
            "cwd": query.cwd,
            "limit": max(limit, 1) + 1,
        },
    )
    taken, more = cut((_row(row, owner_of) for row in rows), limit, max_bytes, lambda row: len(row.body))
    return Page(taken, encode_cursor(taken[-1].updated_at, taken[-1].session) if more else None)


def _row(row: tuple[Any, ...], owner_of: OwnerOf) -> SessionRow:
    session, body, total, seq, updated_at, *owner, unfinished, waiting = row
    if seq is None or seal(body, session, updated_at) != total:
        raise Damaged(session, "its record does not match its checksum", {})
    return SessionRow(session, body, seq, updated_at, owner_of(*owner), bool(unfinished), bool(waiting))
