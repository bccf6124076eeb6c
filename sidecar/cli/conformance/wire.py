"""What passes between a client and its sidecar, as the relay tells it. Holds it against nothing."""

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from protocol.base import JsonObject

from .conversations import Kind, Line
from .news import News

_LONGEST_LINE: Final = 1 << 29
"""Bytes: the longest message, each of its characters as an escape."""

Mark = tuple[str, str]
"""The method of a notification, and the type of an event."""


def mark(message: JsonObject) -> Mark:
    """What kind of message it is."""
    params: Any = message.get("params")
    return message.get("method", ""), str(cast("JsonObject", params).get("type", "")) if isinstance(
        params, dict
    ) else ""


class Wire:
    """The log of one conversation, over as many processes as it takes; to be entered.

    Attributes:
        lines: Everything so far.
        came: How often each kind of message has come from the process that runs now.
    """

    def __init__(self, path: Path, news: News) -> None:
        """`path`: the socket to listen at; `news`: told of every line."""
        self.lines: list[Line] = []
        self.came = Counter[Mark]()
        self._path = path
        self._news = news
        self._pid = 0
        self._killed_by: int | None = None
        self._open = 0
        self._relays = set[asyncio.StreamWriter]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._listen, self._path, limit=_LONGEST_LINE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.kill(signal.SIGKILL)  # a client may leave it behind
        for relay in self._relays:
            relay.close()

    @property
    def quiet(self) -> bool:
        """Whether no relay is connected, so that nothing more will be told."""
        return self._open == 0

    def kill(self, number: int) -> None:
        """End the sidecar by a signal; harmless if it has ended."""
        if self._pid:
            self._killed_by = number
            with suppress(ProcessLookupError):  # it has ended, and the relay will tell
                os.kill(self._pid, number)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        self._relays.add(writer)
        try:
            while text := await reader.readline():
                self._take(*next(iter(json.loads(text).items())))
            if self._pid:  # the relay was killed before it could tell
                self._end(-signal.SIGKILL)
        finally:
            self._open -= 1
            self._relays.discard(writer)
            writer.close()
            self._news.tell()

    def _take(self, kind: Any, value: Any) -> None:
        if kind == "pid":
            self._pid = value
            self.came.clear()
        elif kind == "exit":
            self._end(value)
        else:
            self._add(kind, value)
            if kind == "←":
                self.came[mark(value)] += 1
        self._news.tell()

    def _end(self, code: int) -> None:
        if self._killed_by is not None:
            self._add("kill", self._killed_by)
        else:
            self._add("exit", code)
        self._pid, self._killed_by = 0, None

    def _add(self, kind: Kind, value: Any) -> None:
        self.lines.append(Line(kind, value, len(self.lines) + 1))
