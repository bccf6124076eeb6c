"""What may be written into long-term memory, and what may be asked: the rules that every store shares. Pure."""

import json
from datetime import UTC, datetime, timedelta
from typing import Final

from providers.api.memory import Scope

from .base import Refused
from .memories import OtherModel
from .memory_rows import MemoryFilter, MemoryWrite, QueryVector

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FLOAT: Final = 4


def check_write(write: MemoryWrite) -> None:
    """Look at a record before anything of it is written.

    Raises:
        Refused: it is of nobody, blank, or without a name or a time.
    """
    check_scope(write.scope)
    if not write.collection or not write.memory_id:
        raise Refused("a memory belongs to a collection and has an id")
    if is_blank(write.text):
        raise Refused(f"the memory {write.memory_id!r} is blank")
    instant(write.created_at)


def check_scope(scope: Scope) -> None:
    """Refuse to read or write for everybody, or for nobody.

    Raises:
        Refused: no key of the scope is given, or one is given and empty.
    """
    values = [value for value in keys_of(scope) if value is not None]
    if not values or "" in values:
        raise Refused("a memory's scope names at least one of application, agent, session and user, and none is empty")


def check_filter(where: MemoryFilter) -> None:
    """Refuse to read what is nobody's.

    Raises:
        Refused: as `check_scope` says.
    """
    check_scope(where.scope)


def is_blank(text: str) -> bool:
    """Whether nothing of it can be seen: characters without width are blank too."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def keys_of(scope: Scope) -> tuple[str | None, str | None, str | None, str | None]:
    """A scope's keys, widest first: application, agent, user, session."""
    return scope.application_id, scope.agent_id, scope.user_id, scope.session_id


def scope_text(scope: Scope) -> str:
    """A scope as one text; two scopes never have the same."""
    return json.dumps(keys_of(scope))


def instant(created_at: str) -> int:
    """Microseconds since 1970, so that times in different spellings are ordered.

    Raises:
        Refused: it is no time, or does not say in which zone.
    """
    try:
        return (datetime.fromisoformat(created_at) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError) as error:
        raise Refused(f"{created_at!r} is no RFC 3339 time with an offset") from error


def check_model(collection: str, embedder: str | None, dimension: int | None, asked: QueryVector) -> bool:
    """Whether a collection has vectors that a query's may be compared with.

    Raises:
        OtherModel: it has others.
    """
    if embedder is None or dimension is None:
        return False
    if (embedder, dimension * _FLOAT) != (asked.embedder, len(asked.vector)):
        raise OtherModel(collection, embedder, dimension, asked.embedder, len(asked.vector) // _FLOAT)
    return True


def check_dimension(dimension: int, vector: bytes) -> None:
    """Look at a vector before it is kept.

    Raises:
        Refused: it has another dimension.
    """
    if len(vector) != dimension * _FLOAT:
        raise Refused(f"a vector of {len(vector)} bytes has no {dimension} numbers of 32 bits")
