"""Middleware, one inside the other, around some work. Bounds the time that is the middleware's own, not the work's."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from providers.api.middleware import CallNext, MiddlewareError

Layer = Callable[[Any, CallNext], Awaitable[None]]
"""What is called with `(context, call_next)`."""


class TookTooLong(Exception):
    """The middleware's own time is over. The work was not begun, or its outcome is not heard."""


class Crashed(Exception):
    """What was raised would have ended the task or the process. The text is its name: `SystemExit`, for example."""


async def through(
    layers: Sequence[Layer],
    context: Any,
    work: CallNext,
    *,
    limit_s: float,
    repeatable: bool = False,
) -> None:
    """Call the layers, outermost first, and the work inside them.

    Args:
        layers: The middleware.
        context: What each of them is given.
        work: What they stand around.
        limit_s: How long all of them together may take; while the work runs, that clock stands still.
        repeatable: Whether a layer may have what is inside done again.

    Raises:
        TookTooLong: the layers' own time is over.
        Crashed: a layer raised what is no ordinary exception.
        asyncio.CancelledError: the task was cancelled, even if a layer made nothing of that.
        MiddlewareError: a layer called `call_next` again, where it may not.
        Exception: what a layer or the work raises.
    """
    if not layers:
        await work()
        return
    clock = _OwnTime(limit_s)
    call_next: CallNext = clock.left_out(work)
    for layer in reversed(layers):
        call_next = _Step(layer, context, call_next if repeatable else _Once(call_next))
    await clock.bound(call_next())


async def contained(work: Awaitable[object]) -> None:
    """Await somebody else's code, and let nothing out of it that would end more than its own work.

    Raises:
        Crashed: it raised what is no ordinary exception: a `SystemExit`, or a `CancelledError` of its own making.
        asyncio.CancelledError: the task was cancelled, whatever the code made of that.
        Exception: what it raised.
    """
    before = _cancels()
    try:
        await work
    except GeneratorExit:
        raise
    except BaseException as error:
        if _cancels() > before:
            raise asyncio.CancelledError from error
        if isinstance(error, Exception):
            raise
        raise Crashed(type(error).__name__) from error
    if _cancels() > before:
        raise asyncio.CancelledError


def named(error: Exception) -> str:
    """What kind of exception it was: all that is told of one whose text may hold anything."""
    return str(error) if isinstance(error, Crashed) else type(error).__name__


def _cancels() -> int:
    """How many cancellations of the current task are not yet dealt with."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


class _Step:
    """One layer, with what is inside it."""

    def __init__(self, layer: Layer, context: Any, inside: CallNext) -> None:
        self._layer, self._context, self._inside = layer, context, inside

    async def __call__(self) -> None:
        await self._layer(self._context, self._inside)


class _Once:
    """Something that is done at most once."""

    def __init__(self, work: CallNext) -> None:
        self._work = work
        self._done = False

    async def __call__(self) -> None:
        if self._done:
            raise MiddlewareError("call_next was called again; what is inside is done once")
        self._done = True
        await self._work()


class _OwnTime:
    """A time limit that stands still while the work runs."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(seconds)
        self._running_since = self._loop.time()
        self._at_work: list[asyncio.Task[Any] | None] = []
        self._over = False

    async def bound(self, layers: Awaitable[None]) -> None:
        self._running_since = self._loop.time()
        try:
            async with self._limit:
                await contained(layers)
        except TimeoutError as error:
            raise (TookTooLong() if self._limit.expired() else error) from None
        finally:
            self._over = True
            for left in self._at_work:  # a layer has ended while its work goes on in a task of the layer's own
                if left is not None:
                    left.cancel()

    def left_out(self, work: CallNext) -> CallNext:
        async def uncounted() -> None:
            self._stand_still()
            try:
                await work()
            finally:
                self._go_on()

        return uncounted

    def _stand_still(self) -> None:
        """Begin the work, if there is time left: a layer that blocked the loop has used it up unnoticed."""
        if self._over:
            raise MiddlewareError("call_next was called after the middleware had ended")
        if not self._at_work:
            self._left -= self._loop.time() - self._running_since
            if self._left <= 0 or self._limit.expired():
                raise TookTooLong
            self._limit.reschedule(None)
        self._at_work.append(asyncio.current_task())

    def _go_on(self) -> None:
        self._at_work.remove(asyncio.current_task())
        self._running_since = self._loop.time()
        if not (self._at_work or self._over or self._limit.expired()):
            self._limit.reschedule(self._running_since + self._left)
