"""What differs from run to run in a message, put as placeholders: ids, times, durations, hashes. Knows no transport.

`tests/transcripts/README.md` lists the placeholders. A value is named when it is first seen, and has that name from
then on: two messages that should carry the same id do so, or they differ.
"""

import re
from collections import Counter
from typing import Any, Final

from protocol.version import VERSION

_IDS: Final = {
    "sessionId": "session",
    "parentSessionId": "session",
    "runId": "run",
    "interruptedRuns": "run",
    "activeRunId": "run",
    "messageId": "message",
    "epoch": "epoch",
    "instanceId": "instance",
    "errorId": "error",
    "requestId": "request",
    "nextCursor": "cursor",
    "cursor": "cursor",
}
"""Keys whose strings, or lists of strings, are ids → what is named in the placeholder."""

_TIMES: Final = frozenset({"time", "createdAt", "updatedAt", "startedAt", "endedAt", "openedAt", "since", "deadline"})
_DURATIONS: Final = frozenset({"durationMs", "uptimeMs", "lastBeforeMs", "lastAfterMs", "firstTokenMs"})
_NUMBERS: Final = frozenset({"rssBytes", "pid"})
_OF_THE_MACHINE: Final = frozenset({"choices"})
"""Which models there are to choose from depends on what is installed."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"<id:\w+>")

ANY: Final = "<any>"
"""Stands for any value."""


class Placeholders:
    """The names that one conversation has given so far."""

    def __init__(self, folder: str) -> None:
        """`folder`: where the sidecar works, written as `<dir>`."""
        self._folder = folder
        self._name_of: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._value_of: dict[str, str] = {"<dir>": folder}

    def fill(self, value: Any) -> Any:
        """A message as it is sent: with the values of the names in it. The host's own ids keep their place afterwards.

        Raises:
            KeyError: nothing has been given that name.
        """
        filled = self._filled(value)
        self._keep_ids(filled, None)
        return filled

    def mask(self, value: Any, key: str | None = None) -> Any:
        """A message that came, with placeholders. A value that is not of its kind stays, and so differs."""
        if key in _OF_THE_MACHINE:
            return ANY
        if isinstance(value, dict):
            return {name: self.mask(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.mask(item, key) for item in value]
        if isinstance(value, str):
            return self._mask_text(value, key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return "<ms>" if key in _DURATIONS else "<number>" if key in _NUMBERS else value
        return value

    def _mask_text(self, text: str, key: str | None) -> str:
        if key in _TIMES and _TIME.fullmatch(text):
            return "<time>"
        if _HASH.fullmatch(text):
            return "<hash>"
        if key in ("version", "serverVersion") and text == VERSION:
            return "<version>"
        if text == self._folder or text.startswith(f"{self._folder}/"):
            return f"<dir>{text[len(self._folder) :]}"
        if key in _IDS and text not in self._name_of:
            self._counts[_IDS[key]] += 1
            self._give(text, f"<id:{_IDS[key]}{self._counts[_IDS[key]]}>")
        return self._name_of.get(text, text) if key in _IDS else text

    def _give(self, value: str, name: str) -> None:
        self._name_of[value] = name
        self._value_of[name] = value

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str) and (value in self._value_of or _NAME.fullmatch(value)):
            return self._value_of[value]
        if isinstance(value, str) and value.startswith("<dir>/"):
            return self._folder + value.removeprefix("<dir>")
        return value

    def _keep_ids(self, value: Any, key: str | None) -> None:
        """Ids that the host mints are written as they are."""
        if isinstance(value, dict):
            for name, item in value.items():
                self._keep_ids(item, name if name in _IDS else "sessionId" if name == "newSessionId" else None)
        elif isinstance(value, list):
            for item in value:
                self._keep_ids(item, key)
        elif isinstance(value, str) and key is not None:
            self._name_of.setdefault(value, value)


def differs(expected: Any, came: Any, path: str = "") -> str | None:
    """Where two masked messages differ, or nothing. `ANY` in the first equals everything."""
    if expected == ANY:
        return None
    if isinstance(expected, dict) and isinstance(came, dict):
        for name in (*expected, *(name for name in came if name not in expected)):
            if name not in expected or name not in came:
                return f"{path}.{name} {'is missing' if name in expected else 'is not expected'}"
            if (found := differs(expected[name], came[name], f"{path}.{name}")) is not None:
                return found
        return None
    if isinstance(expected, list) and isinstance(came, list) and len(expected) == len(came):
        pairs = enumerate(zip(expected, came, strict=True))
        return next((found for i, (a, b) in pairs if (found := differs(a, b, f"{path}[{i}]")) is not None), None)
    same = expected == came and isinstance(expected, bool) == isinstance(came, bool)
    return None if same else f"{path}: expected {expected!r}, but came {came!r}"
