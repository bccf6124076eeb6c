"""The one condition that every statement over long-term memory has: a collection and exactly one scope. SQL only.

Comparisons are of bytes. The most telling key that is given leads, by its index; the others are compared row by row.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from providers.text_words import quoted

from .memory_rows import MemoryFilter, MemoryWrite
from .memory_rules import keys_of

COLUMNS: Final = ("application_id", "agent_id", "user_id", "session_id")
"""In the order of `keys_of`."""

_INDEXES: Final = {
    "session_id": "memories_by_session",
    "user_id": "memories_by_user",
    "agent_id": "memories_by_agent",
    "application_id": "memories_by_application",
}
"""Most telling first."""

WITHIN: Final = (
    " m.collection = :collection"
    " AND (:application_id IS NULL OR m.application_id = :application_id)"
    " AND (:agent_id IS NULL OR m.agent_id = :agent_id)"
    " AND (:user_id IS NULL OR m.user_id = :user_id)"
    " AND (:session_id IS NULL OR m.session_id = :session_id)"
    " AND (:roles IS NULL OR m.role IN (SELECT value FROM json_each(:roles)))"
    " AND (:exclude_session IS NULL OR m.said_in IS NOT :exclude_session)"
)
"""For a table `memories` that is called `m`; `parameters` gives the values."""


class Scoped:
    """A statement over the records of one scope, in one wording for each key that may lead."""

    def __init__(self, select: str, rest: str = "") -> None:
        """Put it together once.

        Args:
            select: What is selected of `m`, without FROM.
            rest: Further conditions, with their AND, and what follows them.
        """
        self._wordings = {
            key: " ".join((select, "FROM memories m INDEXED BY", index, "WHERE", f"m.{key} = :{key} AND", WITHIN, rest))
            for key, index in _INDEXES.items()
        }

    def led_by(self, values: Mapping[str, Any]) -> str:
        """The wording for these parameters."""
        return self._wordings[leading(values)]


def leading(values: Mapping[str, Any]) -> str:
    """The most telling key that is given."""
    return next(key for key in _INDEXES if values[key] is not None)


def parameters(where: MemoryFilter, **more: object) -> dict[str, Any]:
    """The values of `WITHIN`, and of more."""
    return {
        "collection": where.collection,
        **dict(zip(COLUMNS, keys_of(where.scope), strict=True)),
        "roles": None if where.roles is None else json.dumps(list(where.roles)),
        "exclude_session": where.exclude_session,
        **more,
    }


def index_words(write: MemoryWrite) -> str:
    """The words that stand for a record's scope in the full-text index: one for each key."""
    keys = zip(COLUMNS, keys_of(write.scope), strict=True)
    return " ".join(_scope_word(write.collection, key, value) for key, value in keys if value is not None)


def match(values: Mapping[str, Any], columns: str, terms: Sequence[str]) -> str:
    """An FTS5 query: any of the terms, in these columns, among the records of the leading key."""
    key = leading(values)
    word = _scope_word(values["collection"], key, values[key])
    return f"scope : {quoted(word)} AND {columns} : ({' OR '.join(map(quoted, terms))})"


def _scope_word(collection: str, key: str, value: str) -> str:
    """A word that stands for one key of a scope in the index. It narrows a search; the exact comparison follows."""
    digest = hashlib.sha256("\0".join((collection, key, value)).encode("utf-8", "surrogatepass"))
    return "s" + digest.hexdigest()[:20]
