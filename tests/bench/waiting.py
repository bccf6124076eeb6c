"""Waits for what sends no message: looks again and again, for ten seconds at most. Tests only."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], T]) -> T:
    """What `look` finds, once it finds something.

    Raises:
        TimeoutError: it found nothing.
    """
    for _ in range(1000):
        if found := look():
            return found
        await asyncio.sleep(0.01)
    raise TimeoutError
