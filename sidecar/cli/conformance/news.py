"""Lets a task wait until something is true of what has come from elsewhere. Keeps nothing of it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class News:
    """Told of every change; waits for those that matter."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds that a wait may last."""
        self.patience = patience
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Something has come."""
        self._changed.set()

    async def until(self, look: Callable[[], T | None]) -> T:
        """What `look` finds, as soon as it finds something.

        Raises:
            TimeoutError: nothing was found in time.
        """
        async with asyncio.timeout(self.patience):
            while True:
                self._changed.clear()
                if (found := look()) is not None:
                    return found
                await self._changed.wait()
