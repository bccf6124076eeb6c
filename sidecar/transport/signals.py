"""SIGTERM, SIGINT and SIGHUP: the first asks for an orderly stop, the second ends the process. Stops nothing itself."""

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

from sidecar.descendants import kill_descendants

_NAMES: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
"""Where the platform has them."""


def install(on_signal: Callable[[int], None]) -> Callable[[], None]:
    """Call `on_signal` on the running loop for the first signal; the second one exits with 128 + its number.

    Plain handlers, not the loop's: the second signal has to work while the loop is blocked. A signal that the
    parent had ignored (`nohup`, a shell's background job) stays ignored.

    Returns:
        A function that puts the previous handlers back.
    """
    loop = asyncio.get_running_loop()
    received = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        del frame
        if received:
            kill_descendants()
            os._exit(128 + number)
        received = True
        loop.call_soon_threadsafe(on_signal, number)

    numbers = [number for name in _NAMES if (number := getattr(signal, name, None)) is not None]
    previous = {number: signal.getsignal(number) for number in numbers}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, handle)

    def restore() -> None:
        _at_fork.clear()
        for number, handler in previous.items():
            signal.signal(number, handler)

    _at_fork.append(restore)
    return restore


_at_fork: Final[list[Callable[[], None]]] = []


def _in_child() -> None:
    """A forked child has no loop that would act on a signal: SIGTERM has to end it, as it ends any process."""
    for restore in tuple(_at_fork):
        signal.set_wakeup_fd(-1)  # the parent's loop reads the other end
        restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
