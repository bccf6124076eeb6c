"""JSON bytes to plain Python values and back, with what the wire refuses or repairs. Knows nothing of JSON-RPC."""

import json
import re
from collections.abc import Callable, Collection
from math import isfinite
from typing import Final, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from protocol.base import Json

MAX_DEPTH: Final = 200
"""Deepest nesting that is ever taken; the parser's own bound."""

_INT64: Final = range(-(2**63), 2**63)
_REPLACEMENT: Final = "\ufffd"

# Every digit becomes "0": then three plain searches, at the speed of memchr, find what could be out of range.
_SHAPE_OF_NUMBERS: Final = (
    bytes(
        ord("0") if chr(byte).isdigit() else ord("e") if byte in b"eE" else byte if byte in b"+" else ord(" ")
        for byte in range(128)
    )
    + b" " * 128
)
_LONG_NUMBERS: Final = (b"0" * 19, b"0e000", b"0e+000")

# Takes every escape whole, so that an escaped backslash before "ud800" is not mistaken for a surrogate.
_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class DecodeError(ValueError):
    """The bytes are no JSON that the wire takes. The message is a short reason and never repeats the input.

    Attributes:
        path: where in the value it is, for what is found after parsing.
    """

    def __init__(self, reason: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def decode(body: bytes, max_depth: int = MAX_DEPTH) -> Json:
    """Parse one JSON text.

    Lone surrogates become U+FFFD. Object keys are plain data, whatever they are named; of two equal ones the
    last counts.

    Raises:
        DecodeError: for anything that is no JSON in UTF-8, is nested deeper than `max_depth` levels (more than 200
            make no difference), or holds a number that is neither a finite float64 nor an int64.
    """
    value = _parse(body)
    if max_depth < MAX_DEPTH:
        _refuse_depth(value, max_depth)
    shape = body.translate(_SHAPE_OF_NUMBERS)
    if any(number in shape for number in _LONG_NUMBERS):
        _refuse_numbers(value)
    return value


def has_nul(body: bytes) -> bool:
    """Whether a NUL character may stand in the text: cheap, never wrongly False."""
    return b"\\u0000" in body


def refuse_nul(value: Json, path: tuple[str | int, ...] = ()) -> None:
    """Refuse free-form JSON that holds a NUL character, in a key or a string.

    Raises:
        DecodeError: with the path of the value; where a key holds it, of the object.
    """
    if isinstance(value, str):
        if "\0" in value:
            raise DecodeError("a NUL character is not allowed here", path)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Json]", value).items():
            refuse_nul(key, path)
            refuse_nul(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Json]", value)):
            refuse_nul(item, (*path, index))


def replace_nul(value: Json) -> Json:
    """Copy `value` with U+FFFD for each NUL character, in keys and strings."""
    return _map_text(value, lambda text: text.replace("\0", _REPLACEMENT))


def encode_json(value: object) -> bytes:
    """Serialise plain values and pydantic models, compactly.

    NaN and the infinities become null, lone surrogates U+FFFD.
    """
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        escaped = json.dumps(value, default=_dump).encode()
        return to_json(from_json(_ESCAPE.sub(_replace_lone, escaped)), inf_nan_mode="null")


def _parse(body: bytes) -> Json:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        if (repaired := _ESCAPE.sub(_replace_lone, body)) != body:
            return _parse(repaired)
        raise DecodeError(_reason(error)) from None


def _reason(error: ValueError) -> str:
    """What the parser said: it names a place and a kind of error, and quotes nothing."""
    text = str(error)
    return f"nested deeper than {MAX_DEPTH} levels" if text.startswith("recursion limit") else text


def _refuse_depth(value: Json, max_depth: int) -> None:
    level: list[Json] = [value]
    for _ in range(max_depth + 1):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return
    raise DecodeError(f"nested deeper than {max_depth} levels")


def _members(value: Json) -> Collection[Json]:
    if isinstance(value, dict):
        return cast("dict[str, Json]", value).values()
    return cast("list[Json]", value) if isinstance(value, list) else ()


def _replace_lone(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["lone"] else escape[0]


def _dump(value: object) -> object:
    return value.model_dump(by_alias=True) if isinstance(value, BaseModel) else to_jsonable_python(value)


def _refuse_numbers(value: Json) -> None:
    pending: list[Json] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(cast("dict[str, Json]", item).values())
        elif isinstance(item, list):
            pending.extend(cast("list[Json]", item))
        elif isinstance(item, int) and item not in _INT64:
            raise DecodeError("an integer is outside the range of 64 bits")
        elif isinstance(item, float) and not isfinite(item):
            raise DecodeError("a number is too large for a 64-bit float")


def _map_text(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_text(item, change) for key, item in cast("dict[str, Json]", value).items()}
    if isinstance(value, list):
        return [_map_text(item, change) for item in cast("list[Json]", value)]
    return value
