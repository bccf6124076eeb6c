"""A child process: what it prints, line by line, and that it has ended. What the lines mean is not known here.

Whoever holds its pipes may outlive it, as a detached grandchild does: its end is its own, not that of its pipes.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

_OUTPUTS: Final = {1, 2}
MOST_BYTES: Final = 1 << 26
"""Of one line, and of all that it prints in its life."""
MOST_LINES: Final = 20_000
_STDERR_BYTES: Final = 8192
_STDERR_LINES: Final = 10
_LAST_WORDS_S: Final = 0.5
"""What it wrote before its end is read so soon, where somebody else keeps its pipe open."""
_REAPED_S: Final = 5.0


class Child(asyncio.SubprocessProtocol):
    """One process, in a session of its own.

    Attributes:
        over: Why nothing more is heard of it; None while something may be.
    """

    def __init__(self, take: Callable[[bytes], None], tell: Callable[[], None]) -> None:
        """`take` gets every line of its stdout; `tell` is called after some lines, and at the end."""
        self.over: str | None = None
        self._take = take
        self._tell = tell
        self._rest = bytearray()
        self._stderr = bytearray()
        self._bytes = self._lines = 0
        self._closed = set[int]()
        """Of its outputs."""
        self._ended = asyncio.Event()
        self._silent = asyncio.Event()

    async def start(self, command: Sequence[str], environment: dict[str, str]) -> None:
        """Start it.

        Raises:
            OSError: there is no such program.
        """
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(lambda: self, *command, env=environment, start_new_session=True)

    @property
    def exit_code(self) -> int | None:
        """How it ended: None while it runs, and below 0 by a signal."""
        return self._transport.get_returncode()

    def write(self, data: bytes) -> None:
        """Write to its stdin."""
        self._stdin.write(data)

    def close_stdin(self) -> None:
        """Let it know that nothing more comes."""
        self._stdin.close()

    async def end(self, within: float) -> bool:
        """Wait until nothing more is heard of it, so many seconds at most. Whether that is so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._silent.wait()
        return self._silent.is_set()

    async def kill(self) -> None:
        """End it and its process group, and let go of its pipes."""
        with suppress(ProcessLookupError):  # it has ended, and so has what it left behind
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAPED_S):
                await self._ended.wait()
        self._transport.close()

    # ---- what asyncio tells ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Something was read."""
        if fd != 1:
            self._stderr = (self._stderr + data)[-_STDERR_BYTES:]
            return
        if self.over is not None:
            return
        self._bytes += len(data)
        self._rest += data
        if b"\n" in data:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            self._lines += len(lines)
            for line in lines:
                self._take(line)
        if self._bytes > MOST_BYTES:
            self._refuse(f"the driver says more than {MOST_BYTES >> 20} MiB")
        elif self._lines > MOST_LINES:
            self._refuse(f"the driver says more than {MOST_LINES} lines")
        self._tell()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A pipe was closed at its other end."""
        self._closed |= {fd} & _OUTPUTS
        if self._closed == _OUTPUTS and self._ended.is_set():
            self._fall_silent()

    def process_exited(self) -> None:
        """It has ended."""
        self._ended.set()
        if self._closed == _OUTPUTS:
            self._fall_silent()
        else:
            asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._fall_silent)

    # ---- the end --------------------------------------------------------------------------------------------------

    def _refuse(self, why: str) -> None:
        self.over = why
        self._rest.clear()
        cast("asyncio.ReadTransport", self._transport.get_pipe_transport(1)).close()

    def _fall_silent(self) -> None:
        if self._rest and self.over is None:
            self._take(bytes(self._rest))
            self._rest.clear()
        lines = self._stderr.decode(errors="replace").splitlines()[-_STDERR_LINES:]
        told = "".join(f"\n  | {line}" for line in lines)
        self.over = self.over or f"the driver has ended (exit code {self.exit_code}){told}"
        self._silent.set()
        self._tell()

    @property
    def _stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
