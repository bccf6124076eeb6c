"""A real Redis or Valkey server in a process of its own, on this machine only. It keeps nothing on disk. Tests only.

async with RedisServer(program, folder, password="…") as server:
    await server.command("LRANGE", "key", 0, -1)
    await server.stop()                  # ended; `start` begins anew, empty, at the same port
    with server.frozen(): ...            # takes connections, and answers nothing
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("redis-server", "valkey-server")


def program(name: str) -> str | None:
    """Where a server's program is: on the path, or beside this Python."""
    return shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)


class RedisServer:
    """The server. `url` names it."""

    def __init__(self, program: str, folder: Path, *, password: str | None = None) -> None:
        self._program = program
        self._folder = folder
        self._password = password
        self._process: asyncio.subprocess.Process | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        """Without a password."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def whole_url(self) -> str:
        """With it."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        secret = ["--requirepass", self._password] if self._password is not None else []
        self._process = await asyncio.create_subprocess_exec(
            self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", str(self._folder), *secret,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(10):
            while not await self._answers():
                assert self._process.returncode is None, "the server ended at its start"
                await asyncio.sleep(0.01)

    def kill(self) -> bool:
        """Kill it at once. What it held is gone."""
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None:
                self._process.kill()
        return True

    async def stop(self) -> None:
        """Kill it, and wait for its end."""
        self.kill()
        process, self._process = self._process, None
        if process is not None:
            await process.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stopped in its tracks, while this lasts."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    async def command(self, *words: Any) -> Any:
        """What the server answers to a command of the test's own."""
        from redis.asyncio import Redis

        async with Redis(port=self.port, password=self._password) as client:
            return await client.execute_command(*words)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return (await reader.read(5))[:5] in (b"+PONG", b"-NOAU")
        except OSError:
            return False
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
