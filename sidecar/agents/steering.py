"""Input that reaches a run while it works: stored first, then given to the next model call. Knows no store itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from protocol.messages import Message


class Steering:
    """One run's inbox. Whatever was taken in is taken out exactly once."""

    def __init__(self) -> None:
        self._waiting: list[Message] = []
        self._closed = False
        self._lock = asyncio.Lock()

    async def offer(self, store: Callable[[], Awaitable[Sequence[Message]]]) -> bool:
        """Take input in.

        Args:
            store: Stores the input, and returns it. While it does, the run does not go on past its next model call.

        Returns:
            False, and nothing is stored, if no model call will come any more.
        """
        async with self._lock:
            if self._closed:
                return False
            self._waiting.extend(await store())
            return True

    async def take(self) -> tuple[Message, ...]:
        """What has come since the last time."""
        async with self._lock:
            return self._taken()

    async def end(self) -> tuple[Message, ...]:
        """What has come since the last time; nothing more is taken in."""
        async with self._lock:
            self._closed = True
            return self._taken()

    async def end_if_empty(self) -> bool:
        """Take nothing more in, unless something waits for a model call."""
        async with self._lock:
            self._closed = self._closed or not self._waiting
            return self._closed

    def _taken(self) -> tuple[Message, ...]:
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken
