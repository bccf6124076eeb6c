"""Positions in LSP: the unit they count in, and where in a text they point. Standard library only, no pygls."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from protocol.base import Json, JsonObject

DEFAULT_ENCODING: Final = "utf-16"

# Codec (little endian, so that no byte order mark is written) and bytes a unit.
_UNITS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
# LSP knows these three line ends only; `str.splitlines` also breaks at form feeds, U+2028 and more.
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


class Position(NamedTuple):
    """A place between two characters, counted as the client counts."""

    line: int
    character: int
    """Code units of the negotiated encoding since the line's start."""


def negotiate_position_encoding(client_params: JsonObject) -> str:
    """Choose the unit of `Position.character` from the params of `initialize`.

    The first encoding of the client's list that we know; `utf-16`, which every client must support, where there
    is no such list or nothing in it is known.
    """
    offered = _member(_member(_member(client_params, "capabilities"), "general"), "positionEncodings")
    if not isinstance(offered, list):
        return DEFAULT_ENCODING
    known = (name for name in cast("list[Json]", offered) if isinstance(name, str) and name in _UNITS)
    return next(known, DEFAULT_ENCODING)


def replace(text: str, start: Position, end: Position, new: str, encoding: str) -> str:
    """Put `new` in the place of what stands between two positions.

    A position behind the end of its line, or of the text, means that end; one inside a character means the place
    before it; positions in the wrong order are exchanged.
    """
    first, last = sorted((offset_at(text, start, encoding), offset_at(text, end, encoding)))
    return text[:first] + new + text[last:]


def offset_at(text: str, position: Position, encoding: str) -> int:
    """How many characters of a text stand before a position; one that is nowhere means what it does in `replace`."""
    begin = _line_start(text, position.line)
    line_end = _LINE_END.search(text, begin)
    line = text[begin : line_end.start() if line_end else len(text)]
    if line.isascii():
        return begin + min(position.character, len(line))
    codec, width = _UNITS[encoding]
    return begin + len(line.encode(codec)[: position.character * width].decode(codec, "ignore"))


def position_at(text: str, offset: int, encoding: str) -> Position:
    """Where in a text so many characters have gone by; not between the two of one line's end."""
    if text.count("\r", 0, offset) == text.count("\r\n", 0, offset):
        line, begin = text.count("\n", 0, offset), text.rfind("\n", 0, offset) + 1
    else:
        ends = [found.end() for found in _LINE_END.finditer(text, 0, offset)]
        line, begin = len(ends), ends[-1] if ends else 0
    codec, width = _UNITS[encoding]
    return Position(line, len(text[begin:offset].encode(codec)) // width)


def line_starts(text: str) -> list[int]:
    """Where each line begins, in characters; the last one may be empty."""
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def _line_start(text: str, line: int) -> int:
    if line == 0:
        return 0
    if text.count("\r") == text.count("\r\n"):  # nearly always; then splitting is five times as fast
        pieces = text.split("\n", line)
        return len(text) - len(pieces[-1]) if len(pieces) > line else len(text)
    line_end = next(islice(_LINE_END.finditer(text), line - 1, None), None)
    return line_end.end() if line_end else len(text)


def _member(value: Json, name: str) -> Json:
    return cast("JsonObject", value).get(name) if isinstance(value, dict) else None
