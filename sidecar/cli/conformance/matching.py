"""Holds a message that came against one that is written, placeholders in it. The order of messages is not here."""

from collections.abc import Callable
from typing import Any, Final, cast

from protocol.base import Json, JsonObject
from protocol.version import VERSION

from .placeholders import (
    ANY,
    FOLDER,
    HASH,
    HASH_PATTERN,
    NAME_PATTERN,
    NUMBERS,
    RUNNING_VERSION,
    TIME,
    TIME_PATTERN,
)

_KINDS: Final[dict[str, Callable[[str], object]]] = {
    TIME: TIME_PATTERN.fullmatch,
    HASH: HASH_PATTERN.fullmatch,
    RUNNING_VERSION: VERSION.__eq__,
}
"""Placeholders for text → what text has to be."""


class Matcher:
    """The values that the names of one conversation have got so far."""

    def __init__(self, folder: str) -> None:
        """`folder`: what `<dir>` stands for."""
        self._folder = folder
        self._value_of: dict[str, str] = {}
        self._name_of: dict[str, str] = {}

    def fill(self, value: Json) -> Any:
        """A written message as it is sent: with the values of the names in it.

        Raises:
            KeyError: nothing has been given that name.
        """
        match value:
            case dict():
                return {name: self.fill(item) for name, item in cast("JsonObject", value).items()}
            case list():
                return [self.fill(item) for item in cast("list[Any]", value)]
            case str() if NAME_PATTERN.fullmatch(value):
                return self._value_of[value]
            case str():
                return self._unfolded(value)
            case _:
                return value

    def differs(self, expected: Json, came: Json, path: str = "") -> str | None:
        """Where the two differ, or nothing. A name that is new stands for what came from now on."""
        if expected == ANY:
            return None
        if isinstance(expected, dict) and isinstance(came, dict):
            return self._members_differ(cast("JsonObject", expected), cast("JsonObject", came), path)
        if isinstance(expected, list) and isinstance(came, list):
            items, found = cast("list[Json]", expected), cast("list[Json]", came)
            if len(items) == len(found):
                pairs = enumerate(zip(items, found, strict=True))
                return next((where for i, (a, b) in pairs if (where := self.differs(a, b, f"{path}[{i}]"))), None)
        same = self._fits(expected, came) if isinstance(expected, str) else _is_same(expected, came)
        return None if same else f"{path}: expected {expected!r}, but came {came!r}"

    def _members_differ(self, expected: JsonObject, came: JsonObject, path: str) -> str | None:
        for name in (*expected, *(name for name in came if name not in expected)):
            if name not in expected or name not in came:
                return f"{path}.{name} {'is missing' if name in expected else 'is not expected'}"
            if (found := self.differs(expected[name], came[name], f"{path}.{name}")) is not None:
                return found
        return None

    def _fits(self, expected: str, came: Json) -> bool:
        if expected in NUMBERS:
            return isinstance(came, int | float) and not isinstance(came, bool) and came >= 0
        if not isinstance(came, str):
            return False
        if expected in _KINDS:
            return bool(_KINDS[expected](came))
        if NAME_PATTERN.fullmatch(expected):
            value, name = self._value_of.setdefault(expected, came), self._name_of.setdefault(came, expected)
            return (value, name) == (came, expected)
        return self._unfolded(expected) == came

    def _unfolded(self, text: str) -> str:
        within = text == FOLDER or text.startswith(f"{FOLDER}/")
        return self._folder + text.removeprefix(FOLDER) if within else text


def _is_same(expected: Json, came: Json) -> bool:
    """JSON's equality: `true` is no number."""
    return expected == came and isinstance(expected, bool) == isinstance(came, bool)
