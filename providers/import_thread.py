"""Work of plug-ins that may block, in a thread that holds up nobody. What the work is, is the caller's affair."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

IMPORT_S: Final = 60.0
"""Longest import of a plug-in. One that takes longer is given up; its thread cannot be stopped."""


class ThreadCrashed(Exception):
    """The work raised what would end the process or the task, such as `SystemExit`; the cause is that."""


async def in_thread(work: Callable[[], T]) -> T:
    """Import something in a thread that holds up neither the event loop nor, if it hangs, the end of the process.

    Raises:
        TimeoutError: it took longer than `IMPORT_S`.
        ThreadCrashed: the work raised what is no ordinary exception.
        Exception: what the work raises.
    """
    async with asyncio.timeout(IMPORT_S):
        return await off_loop(work)


async def off_loop(work: Callable[[], T]) -> T:
    """The same without a limit of its own. Cancelled, it leaves the thread behind: that ends by itself, or never.

    Raises:
        ThreadCrashed: the work raised what is no ordinary exception.
        Exception: what the work raises.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except StopIteration as error:  # no future takes it
            future.set_exception(_crashed(error))
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:
            future.set_exception(_crashed(error))

    threading.Thread(target=run, name="plug-in", daemon=True).start()
    return await asyncio.wrap_future(future)


class Once(Generic[T]):
    """Work that is done once for everyone who asks. A failure is told to those who wait; the next one tries again."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """What came of it.

        Raises:
            Exception: what the work raises.
        """
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._task = asyncio.create_task(self._work())
            task.add_done_callback(_retrieve)
        return await asyncio.shield(task)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Whoever waited may have been cancelled: then nobody is told, and nobody is warned."""
    if not task.cancelled():
        task.exception()


def _crashed(error: BaseException) -> ThreadCrashed:
    crashed = ThreadCrashed(type(error).__name__)
    crashed.__cause__ = error
    return crashed
