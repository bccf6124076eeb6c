"""Where a value stands in a configuration: a tuple of keys and list indexes. Pure helpers, no files."""

import re
from typing import Final, cast

from protocol.base import Json, JsonObject

KeyPath = tuple[str | int, ...]
"""For example `("agents", "coder", "context_providers", 0, "type")`."""

MAX_DEPTH: Final = 200
"""Most keys and indexes in a path; deeper nesting is refused."""

ABSENT: Final = object()
"""What `lookup` gives where nothing stands."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dotted(path: KeyPath) -> str:
    """The path as a person writes it: `agents.coder.context_providers[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{toml_key(part)}" if text else toml_key(part)
    return text


def toml_key(key: str) -> str:
    """One key in TOML: bare where it can be, else quoted."""
    return key if _BARE.fullmatch(key) else toml_string(key)


def toml_string(text: str) -> str:
    """A basic string of TOML, on one line, control characters escaped."""
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escape(char)) for char in text) + '"'


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def lookup(data: Json, path: KeyPath) -> Json:
    """The value at a path, or `ABSENT`."""
    for part in path:
        data = step(data, part)
    return data


def step(data: Json, part: str | int) -> Json:
    """The value under one key or index of a table or list, or `ABSENT`."""
    table = as_table(data)
    if table is not None:
        return table.get(part, ABSENT) if isinstance(part, str) else ABSENT
    items = as_list(data)
    if items is not None and isinstance(part, int) and part < len(items):
        return items[part]
    return ABSENT


def as_table(value: Json) -> JsonObject | None:
    """The value, if it is a table."""
    return cast(JsonObject, value) if isinstance(value, dict) else None


def as_list(value: Json) -> list[Json] | None:
    """The value, if it is a list."""
    return cast(list[Json], value) if isinstance(value, list) else None
