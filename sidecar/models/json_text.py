"""JSON as models write it: forgiving of broken text in strings, strict about numbers. Not for the protocol's wire."""

import json
import math
from typing import Any, Final, cast

from pydantic_core import from_json

from protocol.base import JsonObject
from providers.api import json_value
from providers.api.clean_text import clean_text, has_surrogate

MAX_DEPTH: Final = 200


def parse(data: bytes | str) -> Any:
    """Parse one JSON document. Lone surrogates stay in it, for `clean_text` to mend; bad UTF-8 becomes U+FFFD.

    Raises:
        ValueError: it is no JSON, or nested too deep.
    """
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        if "\\u" not in text and "\ufffd" not in text and not has_surrogate(text):
            raise
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _is_deeper(value, MAX_DEPTH):
        raise ValueError("nested too deep")
    return value


def parse_object(text: str) -> JsonObject | None:
    """A tool call's arguments; `None` where the text is no JSON object that can travel.

    Refused are numbers that no float64 or int64 holds and NUL characters, as everywhere in free-form JSON, and what is
    nested too deep to be stored. Lone surrogates become U+FFFD. Blank text is a call without arguments.
    """
    if not text.strip():
        return {}
    try:
        cleaned = _checked(parse(text))
    except ValueError:
        return None
    if not isinstance(cleaned, dict) or _is_deeper(cleaned, json_value.MAX_DEPTH):
        return None
    return cast(JsonObject, cleaned)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(cast(dict[str, Any], value).values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in cast(list[Any], value))


def _checked(value: Any) -> Any:
    match value:
        case str():
            if "\0" in value:
                raise ValueError("NUL in a string")
            return clean_text(value)
        case float() if not math.isfinite(value):
            raise ValueError("a number that no float64 holds")
        case int() if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("an integer outside the range of 64 bits")
        case list():
            return [_checked(item) for item in cast(list[Any], value)]
        case dict():
            return {_checked(key): _checked(item) for key, item in cast(dict[str, Any], value).items()}
        case _:
            return value
