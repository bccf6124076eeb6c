"""Plain JSON values: reading one that a model wrote, and saying why one cannot be stored. Knows no schema."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from protocol.base import Json
from protocol.messages import Message

MAX_DEPTH: Final = 180
"""Nested objects and arrays; the wire takes 200, and a value is sent inside of messages, events and documents."""


def parse_json(text: str) -> Json:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON, is nested too deep, or holds a number that no float64 holds.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def plain_json(value: Any, path: str) -> Json:
    """A copy that holds nothing but JSON: tuples become lists, messages become objects.

    Args:
        value: what is to be stored.
        path: what it is called in an error, for example `state`.

    Raises:
        ValueError: something in it is no JSON; the message names where it stands.
    """
    return _copied(value, path, MAX_DEPTH)


def _copied(value: Any, path: str, levels: int) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{path} holds {value}, which is no JSON number")
            return value
        case Message():
            return value.wire()
        case Mapping() | list() | tuple() if levels == 0:
            raise ValueError(f"{path} is nested too deep")
        case Mapping():
            return _copied_object(cast("Mapping[Any, Any]", value), path, levels - 1)
        case list() | tuple():
            items = cast("list[Any]", value)
            return [_copied(item, f"{path}[{index}]", levels - 1) for index, item in enumerate(items)]
        case _:
            raise ValueError(f"{path} holds a {type(value).__name__}, which is no JSON")


def _copied_object(value: Mapping[Any, Any], path: str, levels: int) -> Json:
    items = list(value.items())  # one step: a tool's thread may be writing
    odd = next((key for key, _ in items if not isinstance(key, str)), None)
    if odd is not None:
        raise ValueError(f"{path} has the key {odd!r}, which is no string")
    return {key: _copied(item, f"{path}.{key}", levels) for key, item in items}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("it holds a number that no float64 holds")
    return number
