"""The ordered outgoing queue: joins frames, tells producers when to wait, notices that nobody reads. Never blocks."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

_JOINED_BYTES: Final = 4096
_STUCK_CHECKS: Final = 10


@dataclass(frozen=True)
class WriterLimits:
    """Byte marks of the queue, and how long it may stand still."""

    drain_above: int = 1024 * 1024
    """Producers wait above this …"""
    drain_until: int = 256 * 1024
    """… until the queue has fallen to this."""
    pause_reading_above: int = 8 * 1024 * 1024
    """Nothing is read from a client above this, until `drain_until`."""
    hard_cap: int = 64 * 1024 * 1024
    """Above this the client is given up. The largest message queued is not counted: it may be as long as it is."""
    stuck_after: float = 15 * 60.0
    """Seconds without one byte taken, after which the client is given up."""


class Writer(asyncio.BaseProtocol):
    """Feeds one write transport. Every method belongs to the loop's thread."""

    def __init__(
        self, limits: WriterLimits, *, pause_reading: Callable[[bool], None], on_gone: Callable[[str], None]
    ) -> None:
        self._limits = limits
        self._pause_reading = pause_reading
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._joined: list[bytes] = []
        self._joined_bytes = 0
        self._is_scheduled = False
        self._accepted = 0  # bytes given to the transport, ever
        self._largest = 0  # the longest frame since the queue was empty
        self._room = asyncio.Event()
        self._room.set()
        self._flooded = False
        self._ended = False
        self._stuck_timer: asyncio.TimerHandle | None = None
        self.closed = asyncio.Event()
        """Set when the transport has let go of its descriptor."""

    def send(self, frame: bytes) -> None:
        """Queue a frame. Those of one loop tick leave in one write; after the end they are dropped."""
        if self._ended:
            return
        size = len(frame)
        if size > self._largest:
            self._largest = size
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._write_tick)
        self._joined.append(frame)
        self._joined_bytes += size
        if self._joined_bytes >= _JOINED_BYTES:
            self._write_joined()

    def queued_bytes(self) -> int:
        """Bytes that the operating system has not taken yet."""
        if self._ended or self._transport is None:
            return self._joined_bytes
        return self._joined_bytes + self._transport.get_write_buffer_size()

    @property
    def congested(self) -> bool:
        """Whether producers have to wait."""
        return not self._room.is_set()

    async def drain(self) -> None:
        """Wait for room, if the queue is above the high mark."""
        await self._room.wait()

    async def flush(self, timeout: float) -> bool:
        """Wait until everything was taken by the operating system.

        Returns:
            Whether it was, within `timeout` seconds.
        """
        self._write_joined()
        if self._transport is None or self._ended:
            return False
        self._transport.set_write_buffer_limits(high=0, low=0)
        try:
            async with asyncio.timeout(timeout):
                await self._room.wait()
        except TimeoutError:
            return False
        finally:
            self._limit_transport()
        return not self._ended

    def end(self) -> None:
        """Drop what is queued, and everything that is sent from now on; nobody waits any longer."""
        if self._ended:
            return
        self._ended = True
        self._joined.clear()
        self._joined_bytes = 0
        self._room.set()
        if self._stuck_timer:
            self._stuck_timer.cancel()
        if self._transport and not self.closed.is_set():
            self._transport.abort()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._limit_transport()

    def pause_writing(self) -> None:
        """Above the high mark."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Below the low mark."""
        self._room.set()
        if self._flooded:
            self._flooded = False
            self._pause_reading(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side closed its end, now or when we wrote."""
        self.closed.set()
        self._give_up(f"the client closed its end of our output ({type(exc).__name__ if exc else 'hang-up'})")

    def _limit_transport(self) -> None:
        if self._transport:
            self._transport.set_write_buffer_limits(high=self._limits.drain_above, low=self._limits.drain_until)

    def _write_tick(self) -> None:
        self._is_scheduled = False
        self._write_joined()

    def _write_joined(self) -> None:
        if not self._joined or self._transport is None or self._ended:
            return
        data = self._joined[0] if len(self._joined) == 1 else b"".join(self._joined)
        self._joined.clear()
        self._joined_bytes = 0
        self._is_scheduled = False
        self._accepted += len(data)
        self._transport.write(data)
        pending = self._transport.get_write_buffer_size()
        if not pending:
            self._largest = 0
        elif pending - self._largest > self._limits.hard_cap:
            self._give_up(f"the client left more than {self._limits.hard_cap} bytes unread")
        else:
            self._watch(pending)

    def _watch(self, pending: int) -> None:
        if not self._flooded and pending > self._limits.pause_reading_above:
            self._flooded = True
            self._pause_reading(True)
        if self._stuck_timer is None:
            self._check_later(self._accepted - pending, 0)

    def _check_later(self, taken: int, checks: int) -> None:
        delay = self._limits.stuck_after / _STUCK_CHECKS
        self._stuck_timer = self._loop.call_later(delay, self._check_stuck, taken, checks + 1)

    def _check_stuck(self, taken_before: int, checks: int) -> None:
        """Give up when nothing was taken in a row of checks: a slow reader is not a stuck one."""
        self._stuck_timer = None
        if self._ended or self._transport is None or not (pending := self._transport.get_write_buffer_size()):
            return
        taken = self._accepted - pending
        if taken > taken_before:
            self._check_later(taken, 0)
        elif checks < _STUCK_CHECKS:
            self._check_later(taken, checks)
        else:
            self._give_up(f"the client has taken nothing for {self._limits.stuck_after:g} s")

    def _give_up(self, why: str) -> None:
        if not self._ended:
            self.end()
            self._on_gone(why)
