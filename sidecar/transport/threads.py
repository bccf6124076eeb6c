"""Read and write transports over daemon threads, for descriptors that a loop cannot or must not poll. No protocol here.

Those are regular files, terminals, everything on Windows, and whatever shares its open file description with a
stream that is not ours alone: non-blocking mode would leak there.
"""

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVarTuple, Unpack

_Args = TypeVarTuple("_Args")

_CHUNK_BYTES: Final = 64 * 1024

_READABLE, _WRITABLE = (1, 4) if sys.platform == "win32" else (select.POLLIN, select.POLLOUT)


class ThreadReadTransport(asyncio.ReadTransport):
    """Reads in a thread of its own, one chunk ahead of the loop at most."""

    def __init__(self, protocol: asyncio.Protocol, fd: int) -> None:
        super().__init__()
        self._protocol = protocol
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiter = _waiter(fd)
        self._taken = threading.Event()
        self._paused = False
        self._closed = False
        protocol.connection_made(self)
        threading.Thread(target=self._run, name="sidecar-reader", daemon=True).start()

    def pause_reading(self) -> None:
        """Stop before the next chunk."""
        self._paused = True
        self._waiter.wake()

    def resume_reading(self) -> None:
        """Go on."""
        self._paused = False
        self._waiter.wake()

    def close(self) -> None:
        """Stop for good. A thread that sits in a blocking read is left there; it dies with the process."""
        if not self._closed:
            self._closed = True
            self._taken.set()
            self._waiter.wake()
            self._loop.call_soon(self._protocol.connection_lost, None)

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def _run(self) -> None:
        try:
            while not self._closed and self._read():
                pass
        finally:
            self._waiter.close()
            os.close(self._fd)

    def _read(self) -> bool:
        """Read one chunk and wait until the loop has it; False at the end."""
        if not self._waiter.wait(None if self._paused else _READABLE):
            return True
        try:
            data = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:  # someone who shares the description made it non-blocking, and took the bytes
            return True
        except OSError:
            data = b""
        self._taken.clear()
        if not _tell(self._loop, self._deliver, data):
            return False
        self._taken.wait()
        return bool(data)

    def _deliver(self, data: bytes) -> None:
        self._taken.set()
        if self._closed:
            return
        if data:
            self._protocol.data_received(data)
        else:
            self._closed = True
            self._protocol.connection_lost(None)


class ThreadWriteTransport(asyncio.WriteTransport):
    """Writes in a thread of its own. While there is nothing to write, it watches for a hang-up."""

    def __init__(self, protocol: asyncio.BaseProtocol, fd: int) -> None:
        super().__init__()
        self._protocol = protocol
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiter = _waiter(fd)
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._high, self._low = 65536, 16384
        self._paused = False
        self._closed = False
        protocol.connection_made(self)
        threading.Thread(target=self._run, name="sidecar-writer", daemon=True).start()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes."""
        with self._lock:
            if self._closed:
                return
            idle = not self._buffer
            self._buffer += data
        if idle:
            self._waiter.wake()
        self._pause_if_full()

    def get_write_buffer_size(self) -> int:
        """Bytes that the operating system has not taken."""
        return len(self._buffer)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks; both are wanted here."""
        with self._lock:
            self._high, self._low = high or 0, low or 0
        self._pause_if_full()
        self._resume_if_drained()

    def abort(self) -> None:
        """Drop what is queued and stop. A thread that sits in a blocking write is left there."""
        with self._lock:
            closed, self._closed = self._closed, True
            self._buffer.clear()
        if not closed:
            self._waiter.wake()
            self._loop.call_soon(self._protocol.connection_lost, None)

    close = abort

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def _run(self) -> None:
        try:
            while not self._closed:
                self._write()
        except OSError as error:
            _tell(self._loop, self._lose, error)
        finally:
            self._waiter.close()
            os.close(self._fd)

    def _write(self) -> None:
        """Write one chunk, or wait for one; raises when the other side has gone."""
        with self._lock:
            chunk = bytes(self._buffer[:_CHUNK_BYTES])
        seen = self._waiter.wait(_WRITABLE if chunk else 0)
        if not seen or self._closed:
            return
        if not chunk:
            raise BrokenPipeError
        try:
            written = os.write(self._fd, chunk)
        except BlockingIOError:  # made non-blocking by someone who shares the description
            return
        with self._lock:
            del self._buffer[:written]
            drained = self._paused and len(self._buffer) <= self._low
        if drained:
            _tell(self._loop, self._resume_if_drained)

    def _pause_if_full(self) -> None:
        with self._lock:
            pause = not self._paused and len(self._buffer) > self._high
            self._paused = self._paused or pause
        if pause:
            self._protocol.pause_writing()

    def _resume_if_drained(self) -> None:
        with self._lock:
            resume = self._paused and len(self._buffer) <= self._low
            self._paused = self._paused and not resume
        if resume:
            self._protocol.resume_writing()

    def _lose(self, error: OSError) -> None:
        if not self._closed:
            self._closed = True
            self._protocol.connection_lost(error)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[[Unpack[_Args]], object], *args: *_Args) -> bool:
    """Call a function in the loop's thread; False if the loop has closed."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        return False
    return True


class _Waiter:
    """Lets a thread wait for its descriptor and for a wake-up from the loop's thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()
        self._closed = False

    def wait(self, events: int | None) -> int:
        """Wait until one of `events` or a hang-up is seen on the descriptor, or a wake-up; None: only for the latter.

        Returns:
            The events seen; 0 for a wake-up.
        """
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        if events is not None:
            poll.register(self._fd, events)
        seen = dict(poll.poll())
        if seen.pop(self._wake_read, 0):
            os.read(self._wake_read, 4096)
        return seen.get(self._fd, 0)

    def wake(self) -> None:
        """Wake the thread, now or at its next wait."""
        with self._lock:
            if not self._closed:
                os.write(self._wake_write, b"x")

    def close(self) -> None:
        """Free the descriptors; only the waiting thread may."""
        with self._lock:
            self._closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)


class _BlockingWaiter:
    """The same where there is no `poll` (Windows): the descriptor counts as ready, and the call itself blocks."""

    def __init__(self, fd: int) -> None:
        del fd
        self._event = threading.Event()

    def wait(self, events: int | None) -> int:
        """Return at once if there is something to do, else at the next wake-up."""
        if events:
            return events
        self._event.wait()
        self._event.clear()
        return 0

    def wake(self) -> None:
        """Wake the thread."""
        self._event.set()

    def close(self) -> None:
        """Nothing to free."""


def _waiter(fd: int) -> _Waiter | _BlockingWaiter:
    return _BlockingWaiter(fd) if sys.platform == "win32" else _Waiter(fd)
