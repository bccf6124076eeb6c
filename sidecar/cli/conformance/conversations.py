"""The golden conversations and their format: what a line means, where they are, which a client can play. Plays none."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from protocol.base import JsonObject

from .parsing import parse
from .shapes import number

Kind = Literal["#", "→", "←", "kill", "eof", "exit"]

_KINDS: Final[tuple[Kind, ...]] = ("#", "→", "←", "kill", "eof", "exit")
_OF_EDITORS: Final = ("textDocument/", "workspace/", "window/")

_PACKED: Final = Path(__file__).parent / "conversations"
_CHECKOUT: Final = Path(__file__).parents[3] / "tests" / "transcripts"
FOLDER: Final = _PACKED if _PACKED.is_dir() else _CHECKOUT
"""Where they are: in an installed sidecar, or in a checkout."""
SCRIPTS: Final = FOLDER / "scripts"
"""What their models read."""


@dataclass(frozen=True)
class Line:
    """One line of a conversation."""

    kind: Kind
    value: Any
    number: int
    """Counted from 1."""

    def text(self) -> str:
        """The line as it stands in the file."""
        return json.dumps({self.kind: self.value}, ensure_ascii=False)


def read(path: Path) -> list[Line]:
    """The lines of a conversation, or of a record.

    Raises:
        ValueError: a line is not in the format; the message names it.
    """
    lines = list[Line]()
    for place, text in enumerate(path.read_bytes().split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            whole = parse(text)
        except ValueError as error:
            raise ValueError(f"{path.name}:{place}: a line is a JSON object: {error}") from error
        keys: set[str] = set(cast("JsonObject", whole)) if isinstance(whole, dict) else set()
        kind: Kind | None = next((each for each in _KINDS if keys == {each}), None)
        if kind is None:
            raise ValueError(f"{path.name}:{place}: a line has one key, of {', '.join(_KINDS)}")
        if kind in ("exit", "kill") and number(whole[kind]) is None:
            raise ValueError(f"{path.name}:{place}: the value of {kind!r} is a number")
        lines.append(Line(kind, whole[kind], place))
    return lines


def is_ended(lines: Sequence[Line]) -> bool:
    """Whether a log, if there is anything in it, says how its last conversation ended."""
    last = next((line.kind for line in reversed(lines) if line.kind != "#"), "exit")
    return last in ("exit", "kill", "eof")


@dataclass(frozen=True)
class Conversation:
    """A golden conversation."""

    name: str
    lines: Sequence[Line]

    @property
    def summary(self) -> str:
        """What it shows: its first comment."""
        return next((str(line.value) for line in self.lines if line.kind == "#"), "")

    @property
    def obstacle(self) -> str | None:
        """Why a client library cannot play it; None where it can."""
        for message in self._sent():
            if not isinstance(message, dict):
                return "sends what is no message, as no client library does"
            if str(cast("JsonObject", message).get("method", "")).startswith(_OF_EDITORS):
                return "is an editor's: it speaks LSP, which a host need not"
        return None

    def refusals(self) -> Counter[tuple[str, int]]:
        """How often it has a request of a method refused with a code."""
        methods: dict[object, str] = {}
        found = Counter[tuple[str, int]]()
        for line in self.lines:
            if line.kind not in ("→", "←") or not isinstance(line.value, dict):
                continue
            message = cast("JsonObject", line.value)
            if line.kind == "→":
                methods[message.get("id")] = message.get("method", "")
            elif "error" in message:
                found[methods.get(message["id"], ""), message["error"]["code"]] += 1
        return found

    def _sent(self) -> Iterator[Any]:
        return (line.value for line in self.lines if line.kind == "→")


def conversations() -> list[Conversation]:
    """All of them, by name.

    Raises:
        ValueError: one is damaged; the message names the line.
    """
    return [Conversation(path.stem, read(path)) for path in sorted(FOLDER.glob("*.jsonl"))]
