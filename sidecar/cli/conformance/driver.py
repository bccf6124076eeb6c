"""The program under test: a client behind a few lines of its author's, which is told what to do and says what came.

Each line of its stdin tells it one thing to do, each line of its stdout says one thing; `docs/hosts.md` lists them.
"""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, cast

from protocol.base import JsonObject

from .child import Child
from .news import News
from .parsing import parse
from .place import VARIABLE, Place
from .weather import calmed

_SAYS: Final[dict[str, Any]] = {"answer": int, "event": dict, "notified": str, "asked": int, "ended": int | None}
"""What a line may say → the type of its value."""
_SHOWN: Final = 200
_LEAVING_S: Final = 5.0


class Said(NamedTuple):
    """One thing that the driver said, and after how many others."""

    position: int
    body: JsonObject


class Driver:
    """One driver process; to be entered.

    Attributes:
        answers: Number of a call → what was said of its answer.
        events: Durable events.
        asked: Requests of the sidecar's.
        ended: Ends of sidecars.
        nonsense: The beginning of the first line that says nothing that is known.
    """

    def __init__(self, command: Sequence[str], place: Place, news: News) -> None:
        """Say what to start; `news` is told of everything that it says."""
        self.answers: dict[int, list[Said]] = defaultdict(list)
        self.events: list[Said] = []
        self.asked: list[Said] = []
        self.ended: list[Said] = []
        self.nonsense: str | None = None
        self._command = command
        self._place = place
        self._child = Child(self._take, news.tell)
        self._count = 0

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            OSError: there is no such program.
        """
        await self._child.start(self._command, {**os.environ, VARIABLE: str(self._place.executable)})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._child.kill()

    @property
    def over(self) -> str | None:
        """Why nothing more is heard of it; None while something may be."""
        return self._child.over

    def tell(self, body: JsonObject) -> None:
        """Tell it to do something."""
        self._child.write(json.dumps(body).encode() + b"\n")

    async def leave(self) -> str | None:
        """Let it go: close its stdin, and wait for its end. What is wrong with that, or nothing."""
        self._child.close_stdin()
        if await self._child.end(_LEAVING_S):
            return self.over if self._child.exit_code else None
        return f"the driver did not end within {_LEAVING_S:g} s of the end of its stdin"

    def _take(self, text: bytes) -> None:
        try:
            body = parse(text)
        except ValueError:
            body = None
        what = _what(body)
        if what is None:
            if self.nonsense is None:
                self.nonsense = text[:_SHOWN].decode(errors="replace").rstrip()
            return
        self._count += 1
        said = Said(self._count, calmed(body))
        match what:
            case "answer":
                self.answers[said.body["answer"]].append(said)
            case "event":
                if not said.body["event"].get("ephemeral"):
                    self.events.append(said)
            case "asked":
                self.asked.append(said)
            case "ended":
                self.ended.append(said)
            case _:
                pass


def _what(body: Any) -> str | None:
    """What a line says; None where it says nothing that is known."""
    if not isinstance(body, dict):
        return None
    line = cast("JsonObject", body)
    what = next((name for name in _SAYS if name in line), None)
    value = line.get(what or "")
    known = what is not None and isinstance(value, _SAYS[what]) and not isinstance(value, bool)
    return what if known else None
