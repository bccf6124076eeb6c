"""Notices the death of the process that started us, or that the client named. Ends nothing itself."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Final

_POLL_SECONDS: Final = 1.0


class ParentWatch:
    """Calls `on_gone` once, on the loop, when the parent or a named process has ended."""

    def __init__(self, on_gone: Callable[[str], None]) -> None:
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._pidfds: dict[int, int] = {}
        self._polled: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._parent = 0
        self._closed = False

    def watch_parent(self) -> None:
        """Watch the process that started us, by its death and by a change of our parent."""
        self._parent = os.getppid()
        if self._parent > 1:  # 0 lives in another namespace, and with process 1 we end anyway
            self.watch(self._parent)
            if os.getppid() != self._parent:  # it died between the two lines
                self._loop.call_soon(self._report, self._parent)

    def watch(self, pid: int) -> bool:
        """Watch a process, such as the `processId` of `initialize`.

        Returns:
            False if there is no such process here: a client in another container names one of its own.
        """
        if self._closed or pid <= 0 or pid == os.getpid():
            return False
        if pid in self._pidfds or pid in self._polled:
            return True
        try:
            pidfd = _open_pidfd(pid)
        except ProcessLookupError:
            return False
        if pidfd is not None:
            self._pidfds[pid] = pidfd
            self._loop.add_reader(pidfd, self._report, pid)
            return True
        if not _is_alive(pid):
            return False
        self._polled.add(pid)
        if self._timer is None:
            self._timer = self._loop.call_later(_POLL_SECONDS, self._poll)
        return True

    def close(self) -> None:
        """Stop watching."""
        self._closed = True
        for pidfd in self._pidfds.values():
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        self._pidfds.clear()
        self._polled.clear()
        if self._timer:
            self._timer.cancel()

    def _poll(self) -> None:
        for pid in self._polled:
            if not _is_alive(pid) or (pid == self._parent and os.getppid() != pid):
                self._report(pid)
                return
        self._timer = self._loop.call_later(_POLL_SECONDS, self._poll)

    def _report(self, pid: int) -> None:
        if not self._closed:
            self.close()
            self._on_gone(f"the {'parent' if pid == self._parent else 'client'} process {pid} has ended")


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none.

    Raises:
        ProcessLookupError: there is no such process.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, or a sandbox that forbids the call
        return None


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists, and is not ours to signal
        return True
    return True


if sys.platform == "win32":

    def _is_alive_on_windows(pid: int) -> bool:
        """`os.kill(pid, 0)` would end the process there."""
        import ctypes

        synchronize, wait_timeout = 0x00100000, 0x102
        handle = ctypes.windll.kernel32.OpenProcess(synchronize, False, pid)
        if not handle:
            return False
        try:
            return ctypes.windll.kernel32.WaitForSingleObject(handle, 0) == wait_timeout
        finally:
            ctypes.windll.kernel32.CloseHandle(handle)
