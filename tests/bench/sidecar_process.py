"""One `agent-sidecar serve` and our ends of its pipes: forked from a warm process, or started as a user's host does.

Importing the program and what it loads later (pygls, openai) costs a second of processor time, a fork a few
milliseconds; the suite starts over a thousand. `AGENT_SIDECAR_TEST_START=exec` starts every one anew.
"""

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

_PROGRAM: Final = Path(__file__).with_name("fork_server.py")
_ALWAYS_EXEC: Final = os.environ.get("AGENT_SIDECAR_TEST_START") == "exec" or not hasattr(os, "fork")


class SidecarProcess:
    """A process with pipes. Close it when it has ended."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        """None while it runs, as far as `wait` or `send_signal` have seen."""
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self.stderr: asyncio.StreamReader
        self._open: list[asyncio.BaseTransport] = []
        self._stdout: asyncio.BaseTransport
        self._report: asyncio.StreamReader | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._ended: asyncio.Task[int] | None = None

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        under: Sequence[str] = (),
        *,
        fresh: bool = False,
    ) -> "SidecarProcess":
        """Start one.

        Args:
            arguments: Those of `agent-sidecar`.
            environment: All of it.
            folder: Where it works; here, by default.
            under: A command to start it with.
            fresh: Start the program anew, for what is about its start, its imports or its memory.
        """
        self = cls()
        theirs, ours = zip(os.pipe(), *(reversed(os.pipe()) for _ in range(2)), strict=True)
        try:
            if fresh or under or _ALWAYS_EXEC or _asks_the_interpreter(environment):
                await self._exec([*under, _command(), *arguments], environment, folder, theirs)
            else:
                await self._fork(arguments, environment, folder, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.stdin = await self._writer(ours[0])
        self.stdout = await self._reader(ours[1])
        self._stdout = self._open[-1]
        self.stderr = await self._reader(ours[2])
        self._ended = asyncio.create_task(self._wait())
        return self

    async def wait(self) -> int:
        """The exit code, once it has ended; negative: it died of that signal."""
        assert self._ended is not None
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens where it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def close_stdout(self) -> None:
        """Close our end of its stdout."""
        self._stdout.close()

    def close(self) -> None:
        """Let go of every pipe."""
        for transport in self._open:
            transport.close()

    async def _exec(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None, streams: Sequence[int]
    ) -> None:
        stdin, stdout, stderr = streams
        self._child = await asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=stdout, stderr=stderr, env=dict(environment), cwd=folder
        )
        self.pid = self._child.pid

    async def _fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None, streams: Sequence[int]
    ) -> None:
        wanted = {"arguments": arguments, "environment": environment, "folder": str(folder or Path.cwd())}
        read, write = os.pipe()
        try:
            socket.send_fds(_fork_server(), [json.dumps(wanted).encode()], [*streams, write])
        finally:
            os.close(write)
        self._report = await self._reader(read)
        self.pid = int(await self._report.readline())

    async def _wait(self) -> int:
        if self._child is not None:
            self.returncode = await self._child.wait()
        else:
            assert self._report is not None
            self.returncode = int(await self._report.readline())
        return self.returncode

    async def _reader(self, descriptor: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        pipe = _file(descriptor, "rb")
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._open.append(transport)
        return reader

    async def _writer(self, descriptor: int) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: protocol, _file(descriptor, "wb"))
        self._open.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


def _asks_the_interpreter(environment: Mapping[str, str]) -> bool:
    """Whether it says something to Python itself that the warm process was not told."""
    return any(name.startswith("PYTHON") and os.environ.get(name) != value for name, value in environment.items())


def _file(descriptor: int, mode: str) -> IO[bytes]:
    return os.fdopen(descriptor, mode, buffering=0)


def _command() -> str:
    return str(Path(sys.executable).with_name("agent-sidecar"))


@cache
def _fork_server() -> socket.socket:
    """The warm process of this run of tests; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
    with theirs:
        server = subprocess.Popen([sys.executable, "-I", str(_PROGRAM)], stdin=theirs, env=kept, cwd="/")
    atexit.register(_end, ours, server)
    return ours


def _end(ours: socket.socket, server: subprocess.Popen[bytes]) -> None:
    ours.close()
    server.wait()
