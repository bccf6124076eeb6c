"""Holds back what is not read yet: a bounded buffer of a run's events, and who decides when the pipe is read on.

Reading stops while some run's reader is `EVENTS_KEPT` events behind. It goes on all the same while somebody waits for
something that comes through the same pipe (an answer, another run's event): stopping then could stop both for good. In
that time text deltas are joined, so that what is kept is bounded by what the run produces.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from .types import RunEvent

EVENTS_KEPT: Final = 1_000
"""Unread events of a run above which reading stops; what one read of the pipe brings may come on top."""
_JOINED_TEXT: Final = 16_384
"""Characters of a joined delta above which a new one is begun."""


class Intake:
    """Stops and starts the reading of one client's pipe.

    Args:
        set_reading: Called with whether to read, at each change.
    """

    def __init__(self, set_reading: Callable[[bool], None]) -> None:
        self._set_reading = set_reading
        self._behind = 0
        self._waiting = 0
        self._reading = True

    @contextmanager
    def waited_for(self) -> Generator[None, None, None]:
        """While this is open, somebody waits for something out of the pipe."""
        self._waiting += 1
        self._decide()
        try:
            yield
        finally:
            self._waiting -= 1
            self._decide()

    def falls_behind(self) -> None:
        """A run's reader has too much before it."""
        self._behind += 1
        self._decide()

    def catches_up(self) -> None:
        """A run's reader that was behind is so no longer."""
        self._behind -= 1
        self._decide()

    def _decide(self) -> None:
        reading = not self._behind or self._waiting > 0
        if reading != self._reading:
            self._reading = reading
            self._set_reading(reading)


class EventBuffer:
    """A run's events between their arrival and their reader."""

    def __init__(self, intake: Intake, bound: int = EVENTS_KEPT) -> None:
        self._intake = intake
        self._bound = bound
        self._events: deque[RunEvent] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._behind = False

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: RunEvent) -> None:
        """Add an event; above the bound a text delta is joined to the one before it."""
        if len(self._events) >= self._bound and (joined := _join(self._events[-1], event)) is not None:
            self._events[-1] = joined
            return
        self._events.append(event)
        self._news.set()
        self._look()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._news.set()
        self._look()

    async def get(self) -> RunEvent | None:
        """The next event; None at the end, however often it is asked for."""
        while not self._events:
            if self._ended:
                return None
            self._news.clear()
            with self._intake.waited_for():
                await self._news.wait()
        event = self._events.popleft()
        self._look()
        return event

    def _look(self) -> None:
        count = len(self._events)
        behind = not self._ended and (count > self._bound // 2 if self._behind else count >= self._bound)
        if behind == self._behind:
            return
        self._behind = behind
        if behind:
            self._intake.falls_behind()
        else:
            self._intake.catches_up()


def _join(before: RunEvent, event: RunEvent) -> RunEvent | None:
    """Two text deltas of one message as one, with the later one's number; None where they do not belong together."""
    if event["type"] not in ("message.delta", "reasoning.delta") or before["type"] != event["type"]:
        return None
    old, new = before["data"], event["data"]
    where = ("messageId", "contentIndex")
    if before.get("runId") != event.get("runId") or any(old.get(key) != new.get(key) for key in where):
        return None
    if len(old["text"]) >= _JOINED_TEXT:
        return None
    joined = event.copy()
    joined["data"] = {**new, "text": old["text"] + new["text"]}
    return joined
