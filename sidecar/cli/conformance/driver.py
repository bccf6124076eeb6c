"""The program under test: a client behind a few lines of its author's, which is told what to do and says what came.

Each line of its stdin tells it one thing to do, each line of its stdout says one thing; `docs/hosts.md` lists them.
"""

import asyncio
import json
import os
import signal
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, cast

from protocol.base import JsonObject

from .news import News
from .place import VARIABLE, Place
from .weather import calmed

_SAYS: Final[dict[str, Any]] = {"answer": int, "event": dict, "notified": str, "asked": int, "ended": int | None}
"""What a line may say → the type of its value."""
_LONGEST_LINE: Final = 1 << 26
_STDERR_LINES: Final = 10
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
        nonsense: Lines that say nothing that is known.
    """

    def __init__(self, command: Sequence[str], place: Place, news: News) -> None:
        """Say what to start; `news` is told of everything that it says."""
        self.answers: dict[int, list[Said]] = defaultdict(list)
        self.events: list[Said] = []
        self.asked: list[Said] = []
        self.ended: list[Said] = []
        self.nonsense: list[str] = []
        self._command = command
        self._place = place
        self._news = news
        self._count = 0
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._gone = False

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            OSError: there is no such program.
        """
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, VARIABLE: str(self._place.executable)},
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):  # it has ended, and so has what it left behind
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await asyncio.wait(self._readers, timeout=_LEAVING_S)
        for reader in self._readers:
            reader.cancel()

    @property
    def death(self) -> str | None:
        """How it ended, if it has ended."""
        if not self._gone:
            return None
        told = "".join(f"\n  | {line}" for line in self._stderr)
        return f"the driver has ended (exit code {self._process.returncode}){told}"

    def tell(self, body: JsonObject) -> None:
        """Tell it to do something."""
        cast("asyncio.StreamWriter", self._process.stdin).write(json.dumps(body).encode() + b"\n")

    async def leave(self) -> str | None:
        """Let it go: close its stdin, and wait for its end. What is wrong with that, or nothing."""
        cast("asyncio.StreamWriter", self._process.stdin).close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING_S):
                code = await self._process.wait()
                await asyncio.gather(*self._readers)
                return self.death if code else None
        return f"the driver did not end within {_LEAVING_S:g} s of the end of its stdin"

    async def _read(self) -> None:
        stdout = cast("asyncio.StreamReader", self._process.stdout)
        try:
            while text := await stdout.readline():
                self._take(text)
                self._news.tell()
            await self._process.wait()
        finally:
            self._gone = True
            self._news.tell()

    async def _read_stderr(self) -> None:
        stderr = cast("asyncio.StreamReader", self._process.stderr)
        while text := await stderr.readline():
            self._stderr.append(text.decode(errors="replace").rstrip())

    def _take(self, text: bytes) -> None:
        try:
            body: Any = json.loads(text)
        except ValueError:
            body = None
        what = _what(body)
        if what is None:
            self.nonsense.append(text.decode(errors="replace").rstrip())
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
    return what if what is not None and isinstance(value, _SAYS[what]) else None
