"""Pages and the cursors between them, the same for every store. It knows no rows."""

import base64
import json
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def cut(rows: Iterable[T], limit: int, max_bytes: int, size: Callable[[T], int]) -> tuple[list[T], bool]:
    """Take rows up to a count and a sum of bytes, at least one where there is one; and whether any are left."""
    taken: list[T] = []
    total = 0
    for row in rows:
        total += size(row)
        if taken and (len(taken) >= limit or total > max_bytes):
            return taken, True
        taken.append(row)
    return taken, False


def encode_cursor(updated_at: str, session: str) -> str:
    """Where a page of the list of sessions ended."""
    return _encode([updated_at, session])


def decode_cursor(cursor: str) -> tuple[str, str]:
    """Read `encode_cursor` back.

    Raises:
        ValueError: the cursor is not one of ours.
    """
    match _decode(cursor):
        case [str(updated_at), str(session)]:
            return updated_at, session
        case _:
            raise ValueError("malformed cursor")


def encode_position(at: int, ref: int) -> str:
    """Where a page of memories ended."""
    return _encode([at, ref])


def decode_position(cursor: str) -> tuple[int, int]:
    """Read `encode_position` back.

    Raises:
        ValueError: the cursor is not one of ours.
    """
    match _decode(cursor):
        case [int(at), int(ref)] if max(abs(at), abs(ref)) < 1 << 63:
            return at, ref
        case _:
            raise ValueError("malformed cursor")


def _encode(key: list[str] | list[int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _decode(cursor: str) -> object:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key: object = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise ValueError("malformed cursor") from error
    return key
