"""The parent's side of `mem0_child`: one process a folder, shared by all sessions that use it. It knows no run."""

import asyncio
import json
import os
import struct
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from protocol.base import JsonObject
from providers.api.errors import ProviderError

from .child_process import start_child

START_S: Final = 60.0
"""So long the library may take to be imported and to open its folder."""
STOP_S: Final = 0.5
"""So long it may take to close it; then it is killed."""

_CHILD: Final = Path(__file__).with_name("mem0_child.py")
_NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What of the environment says how endpoints are reached; each in small letters, too."""


class Mem0Failed(ProviderError):
    """Mem0 could not do what it was asked for. The text says why, and repeats nobody's words."""


class Mem0Process:
    """Mem0 in a process of its own, from its first use until the last user is gone; started again after a crash.

    Args:
        folder: Where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._users = 0
        self._changing = asyncio.Lock()
        self._config: JsonObject | None = None
        self._starting: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._numbers = count(1)

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def use(self) -> None:
        """Keep it; each use ends with `release`."""
        self._users += 1

    async def release(self) -> None:
        """End the process if nobody else uses it."""
        self._users -= 1
        if self._users:
            return
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
        async with self._changing:
            if self._users == 0:
                await self._stop(STOP_S)

    async def ready(self, config: JsonObject) -> None:
        """Start it, if it does not run. A caller that is cancelled leaves it starting, for the next one.

        Args:
            config: Mem0's own; it is the same for all that use the folder.

        Raises:
            Mem0Failed: it could not be started.
        """
        starting = self._starting
        if starting is None or (starting.done() and (self._reader is None or self._reader.done())):
            self._config = config
            starting = self._starting = asyncio.create_task(self._start(config))
            starting.add_done_callback(_retrieve)
        elif config != self._config:
            raise Mem0Failed(f"another entry uses {self._folder} with other settings; give one of them another path")
        await asyncio.shield(starting)

    async def ask(self, request: JsonObject) -> list[JsonObject]:
        """Have Mem0 add or search, as `mem0_child` describes it. A caller that is cancelled leaves the work behind.

        Raises:
            Mem0Failed: it ended, or says that it failed.
        """
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, **request})
            told = await answer
        finally:
            del self._waiting[number]
        if "error" in told:
            raise Mem0Failed(str(told["error"]))
        return told["memories"]

    async def _start(self, config: JsonObject) -> None:
        network = (*_NETWORK, *map(str.lower, _NETWORK))
        environment = {name: os.environ[name] for name in network if name in os.environ}
        environment |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(self._folder)}
        async with self._changing:
            await self._stop(0)
            try:
                async with asyncio.timeout(START_S):
                    process = self._process = await start_child(_CHILD, environment=environment)
                    await self._send(config)
                    told = await self._receive(process)
            except (OSError, EOFError, ValueError):
                told = {"error": "its process ended, or hung"}
            except asyncio.CancelledError:
                await self._stop(0)
                raise
            if "error" in told or self._process is None:
                await self._stop(0)
                raise Mem0Failed(f"it cannot be started: {told.get('error')}")
            self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand on answers until there are no more; those who still wait are told."""
        with suppress(OSError, EOFError, ValueError):
            while True:
                told = await self._receive(process)
                waiting = self._waiting.get(told["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(told)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result({"error": "its process ended"})

    async def _send(self, frame: JsonObject) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise Mem0Failed("its process ended")
        body = json.dumps(frame).encode()
        process.stdin.write(struct.pack(">I", len(body)) + body)
        with suppress(ConnectionError):  # whoever reads its answers sees the end
            await process.stdin.drain()

    async def _receive(self, process: asyncio.subprocess.Process) -> JsonObject:
        if process.stdout is None:
            raise EOFError
        (size,) = struct.unpack(">I", await process.stdout.readexactly(4))
        return json.loads(await process.stdout.readexactly(size))

    async def _stop(self, seconds: float) -> None:
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is None:
            return
        try:
            if process.stdin is not None:
                process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            if reader is not None:
                reader.cancel()
            await process.wait()


def _retrieve(starting: asyncio.Task[None]) -> None:
    """Whoever waited may have been cancelled: then nobody is told, and nobody is warned."""
    if not starting.cancelled():
        starting.exception()


def process_of(folder: Path) -> Mem0Process:
    """The process of a folder, by its real path; it is the same for all who ask while somebody has it."""
    real = Path(os.path.realpath(folder))
    found = _processes.get(real)
    if found is None:
        found = _processes[real] = Mem0Process(real)
    return found


_processes: Final[WeakValueDictionary[Path, Mem0Process]] = WeakValueDictionary()
