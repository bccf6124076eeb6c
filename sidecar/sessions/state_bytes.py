"""A value of the state bag as its stored bytes, or why it cannot be stored. Stores nothing."""

import json
import re
from typing import Any, Final, cast

from pydantic_core import from_json

from protocol.base import Json
from providers.api.json_value import MAX_DEPTH, plain_json

_MAY_NOT_TRAVEL: Final = re.compile(rb"\\u0000|\d{19}")
"""What the wire refuses in free-form JSON leaves this in its bytes; what leaves it need not be refused."""


def state_bytes(key: str, value: Json) -> bytes:
    """A state value as it is stored: plain JSON, nothing else.

    Raises:
        ValueError: it is no JSON that can be read back and sent; the message names the key.
    """
    _check_key(key)
    try:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"state key {key!r} holds something that is no JSON: {type(error).__name__}") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        try:
            plain_json(value, key)
        except ValueError:
            raise ValueError(f"state key {key!r} is nested too deep") from None
    if _MAY_NOT_TRAVEL.search(body) and not _travels(from_json(body)):
        raise ValueError(f"state key {key!r} holds a NUL character, or an integer outside the range of 64 bits")
    return body


def _travels(value: Json) -> bool:
    match value:
        case str():
            return "\0" not in value
        case int():
            return -(1 << 63) <= value < 1 << 63
        case list():
            return all(map(_travels, cast("list[Any]", value)))
        case dict():
            return all(_travels(key) and _travels(item) for key, item in cast("dict[str, Any]", value).items())
        case _:
            return True


def _check_key(key: object) -> None:
    """Tools and providers write the bag as they like."""
    match key:
        case str():
            key.encode()
            if "\0" in key:
                raise ValueError(f"the state key {key!r} holds a NUL character")
        case _:
            raise ValueError(f"the state key {key!r} is no string")
