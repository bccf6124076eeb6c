"""What differs from run to run in a message, put as placeholders: ids, times, durations, hashes. Compares nothing.

`README.md` beside the conversations lists the placeholders. A value is named when it is first seen, and has that name
from then on: two messages that should carry the same id do so, or they differ.
"""

import re
from collections import Counter
from typing import Any, Final, cast

from protocol.base import Json, JsonObject
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

TIME_PATTERN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
HASH_PATTERN: Final = re.compile(r"sha256:[0-9a-f]{64}")
NAME_PATTERN: Final = re.compile(r"<id:\w+>")

ANY: Final = "<any>"
TIME: Final = "<time>"
HASH: Final = "<hash>"
RUNNING_VERSION: Final = "<version>"
FOLDER: Final = "<dir>"
NUMBERS: Final = frozenset({"<ms>", "<number>"})


class Placeholders:
    """The names that one conversation has given so far."""

    def __init__(self, folder: str) -> None:
        """`folder`: where the sidecar works, written as `<dir>`."""
        self._folder = folder
        self._name_of: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def keep(self, sent: Json) -> None:
        """Have ids that the host mints in a message written as they are from now on."""
        self._keep(sent, None)

    def mask(self, value: Json, key: str | None = None) -> Json:
        """A message that came, with placeholders. A value that is not of its kind stays, and so differs."""
        if key in _OF_THE_MACHINE:
            return ANY
        match value:
            case dict():
                return {name: self.mask(item, name) for name, item in cast("JsonObject", value).items()}
            case list():
                return [self.mask(item, key) for item in cast("list[Any]", value)]
            case str():
                return self._mask_text(value, key)
            case int() | float() if not isinstance(value, bool) and value >= 0:
                return "<ms>" if key in _DURATIONS else "<number>" if key in _NUMBERS else value
            case _:
                return value

    def mask_sent(self, value: Json) -> Json:
        """A message that was sent, with the names of what came before it; ids that are new in it are the host's own."""
        self.keep(value)
        return self._named(value)

    def _named(self, value: Json) -> Json:
        match value:
            case dict():
                return {name: self._named(item) for name, item in cast("JsonObject", value).items()}
            case list():
                return [self._named(item) for item in cast("list[Any]", value)]
            case str():
                return self._name_of.get(value, self._mask_folder(value))
            case _:
                return value

    def _mask_text(self, text: str, key: str | None) -> str:
        if key in _TIMES and TIME_PATTERN.fullmatch(text):
            return TIME
        if HASH_PATTERN.fullmatch(text):
            return HASH
        if key in ("version", "serverVersion") and text == VERSION:
            return RUNNING_VERSION
        if key in _IDS and text not in self._name_of:
            self._counts[_IDS[key]] += 1
            self._name_of[text] = f"<id:{_IDS[key]}{self._counts[_IDS[key]]}>"
        return self._name_of.get(text, text) if key in _IDS else self._mask_folder(text)

    def _mask_folder(self, text: str) -> str:
        within = self._folder and (text == self._folder or text.startswith(f"{self._folder}/"))
        return f"{FOLDER}{text[len(self._folder) :]}" if within else text

    def _keep(self, value: Json, key: str | None) -> None:
        if isinstance(value, dict):
            for name, item in cast("JsonObject", value).items():
                self._keep(item, name if name in _IDS else "sessionId" if name == "newSessionId" else None)
        elif isinstance(value, list):
            for item in cast("list[Any]", value):
                self._keep(item, key)
        elif isinstance(value, str) and key is not None:
            self._name_of.setdefault(value, value)
