"""Imports of plug-ins, in a thread that holds up nobody. What is imported is the caller's affair."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

T = TypeVar("T")

IMPORT_S: Final = 60.0
"""Longest import of a plug-in. One that takes longer is given up; its thread cannot be stopped."""


async def in_thread(work: Callable[[], T]) -> T:
    """Do it in a thread that holds up nobody: neither the event loop nor, if it hangs, the end of the process.

    Raises:
        TimeoutError: it took longer than `IMPORT_S`.
        Exception: what the work raises.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="plug-in-import", daemon=True).start()
    return await asyncio.wait_for(asyncio.wrap_future(future), IMPORT_S)
