"""Calls a function of the host's, asynchronous or not, so that the loop is never held up. Knows no method."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T


class Crashed(Exception):
    """A function raised what would have ended the loop. The text is its class's name: `SystemExit`, for example."""


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Await a coroutine function; run any other in a thread of its own, and await what it returns if need be.

    A cancelled wait leaves the thread to itself: Python cannot stop one. It does not keep the interpreter from ending.

    Raises:
        Crashed: It raised what is no ordinary exception.
    """
    if inspect.iscoroutinefunction(function):
        return await contained(function(*args, **kwargs))
    result = await _in_thread(lambda: function(*args, **kwargs))
    return await contained(result) if inspect.isawaitable(result) else result


async def contained(work: Awaitable[T]) -> T:
    """Await what runs in the loop. `KeyboardInterrupt` comes through: here it may be a person's Ctrl-C.

    Raises:
        Crashed: It raised `SystemExit`, by which a task would end the whole loop.
    """
    try:
        return await work
    except SystemExit as error:
        raise Crashed(type(error).__name__) from error


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Not in the loop's pool: it is small, a person may be waited for here, and its threads are joined at the end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            answer.set_exception(error)
        else:
            crash = Crashed(type(error).__name__)
            crash.__cause__ = error
            answer.set_exception(crash)

    def work() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:  # whatever it is, the loop has to learn of it
            error = raised
        with suppress(RuntimeError):  # the loop has ended; nobody waits
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    return await answer
