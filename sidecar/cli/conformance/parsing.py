"""Reads JSON that strangers wrote: what is none, or nests too deep to be handled, is a ValueError. Knows no shape."""

import json
from collections.abc import Iterable
from typing import Any, Final, cast

_DEEPEST: Final = 256
"""Deeper than any message that a sidecar takes, and far from what ends Python's stack."""


def parse(text: str | bytes) -> Any:
    """The value that the text stands for.

    Raises:
        ValueError: it is no JSON in UTF-8, or too deep.
    """
    try:
        value: Any = json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise _too_deep() from None
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise _too_deep()


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {_DEEPEST} levels")
