"""The parent's side of `embedded_child`: starts it when it is first needed, again after a crash, and ends it."""

import asyncio
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from providers.child_process import start_child
from sidecar.errors import ModelUnavailable

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 2.0
CACHE_MIB: Final = 128
"""Memory for prompts of other sessions that may come again."""

_CHILD: Final = Path(__file__).with_name("embedded_child.py")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a running child serves."""

    url: str
    """With `/v1`."""
    key: str


class EmbeddedServer:
    """One model file, one child process at most, shared by all sessions of this process."""

    def __init__(self, path: Path, alias: str, context_size: int) -> None:
        """`alias`: the model id that the server shows; the file's path must not be seen."""
        self._path = path
        self._alias = alias
        self._context_size = context_size
        self._process: asyncio.subprocess.Process | None = None
        self._address: Address | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def address(self) -> Address:
        """Where the model is served. Starts the child if none runs.

        Raises:
            ModelUnavailable: the model could not be loaded.
        """
        async with self._lock:
            if self._address is None or self.pid is None:
                await self._stop()
                self._address = await self._start()
            return self._address

    async def has_crashed(self) -> bool:
        """Whether the child is gone. A broken connection is seen a moment before its process is known to have ended."""
        process = self._process
        if process is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await process.wait()
        return process.returncode is not None

    async def aclose(self) -> None:
        """End the child."""
        async with self._lock:
            await self._stop()

    async def _start(self) -> Address:
        key = secrets.token_urlsafe(32)  # loopback is open to every user of the machine
        settings = {
            "path": str(self._path),
            "alias": self._alias,
            "context": self._context_size,
            "threads": max(1, (os.cpu_count() or 1) // 2),
            "cache_mib": CACHE_MIB,
            "key": key,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = process = await start_child(_CHILD, environment=environment)  # the runtime is tuned by it
        try:
            url = await self._ready(process, settings)
        except BaseException:
            await self._stop()
            raise
        return Address(f"{url}/v1", key)

    async def _ready(self, process: asyncio.subprocess.Process, settings: dict[str, Any]) -> str:
        if process.stdin is None or process.stdout is None:
            raise ModelUnavailable("the embedded model's process has no pipes")
        line = b""
        with suppress(TimeoutError, ConnectionError):
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            async with asyncio.timeout(START_TIMEOUT_S):
                await process.stdin.drain()
                line = await process.stdout.readline()
        told: dict[str, str] = json.loads(line) if line.endswith(b"\n") else {}
        if "url" not in told:
            why = told.get("error") or "its process ended, or was not ready in time"
            raise ModelUnavailable(f"the embedded model {self._alias!r} could not be loaded: {why}")
        return told["url"]

    async def _stop(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
