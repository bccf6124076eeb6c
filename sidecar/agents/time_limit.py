"""Awaits somebody else's code for so long and no longer. The clock is set at its first wait: much code never waits."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any

from .onion import contained


class LimitPassed(Exception):
    """The time is over. A `TimeoutError`, in contrast, is of the code's own making."""


async def within(seconds: float, work: Awaitable[None]) -> None:
    """Await the work, contained.

    Raises:
        LimitPassed: it took longer.
        Exception: as `contained`.
    """
    await contained(_Begun(work, asyncio.get_running_loop().time() + seconds))


class _Begun:
    """The work; a clock is set where it waits, because that costs more than all of a hook that has nothing to do."""

    def __init__(self, work: Awaitable[None], until: float) -> None:
        self._work, self._until = work, until

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        try:
            waits_for = next(steps)
        except StopIteration:
            return
        yield from self._go_on(_Rest(steps, waits_for)).__await__()

    async def _go_on(self, rest: Awaitable[None]) -> None:
        limit = asyncio.timeout_at(self._until)
        try:
            async with limit:
                await contained(rest)
        except TimeoutError as error:
            raise (LimitPassed() if limit.expired() else error) from None


class _Rest:
    """What is left of work that waits for something."""

    def __init__(self, steps: Generator[Any, Any, None], waits_for: Any) -> None:
        self._steps, self._waits_for = steps, waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        steps, waits_for = self._steps, self._waits_for
        while True:  # as `yield from` does, which cannot begin in the middle
            try:
                try:
                    yield waits_for
                except BaseException as error:  # whatever it is, it is for the work
                    waits_for = steps.throw(error)
                else:
                    waits_for = next(steps)
            except StopIteration:
                return
