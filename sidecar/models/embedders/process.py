"""The parent's side of `child`: starts it when it is first needed, again after a crash, and ends it. No queue here."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from providers.api.memory import EmbedderError
from providers.child_process import start_child

from .bundled import GET_IT

BATCH_TIMEOUT_S: Final = 60.0
"""Of one batch, with the loading of the model if it is the first."""
STOP_TIMEOUT_S: Final = 2.0

_CHILD: Final = Path(__file__).with_name("child.py")
_MAX_DIMENSION: Final = 1 << 16
_TUNING: Final = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1"}
"""More threads wait for each other by spinning: beside another busy process they took ten times as long."""


class EmbedderProcess:
    """One model in one child process at most. One batch at a time is the caller's to see to."""

    def __init__(self, package: str, *, script: Path = _CHILD, timeout_s: float = BATCH_TIMEOUT_S) -> None:
        """`script`: what the child runs."""
        self._package = package
        self._script = script
        self._timeout_s = timeout_s
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def encode(self, texts: list[str], *, is_query: bool) -> list[memoryview]:
        """The numbers of each text: 32-bit floats, little-endian.

        Raises:
            EmbedderError: the package is missing or failed, or the child crashed or hung; the next batch gets a new
                one.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                if self.pid is None:
                    await self._start()
                return await self._exchange(texts, is_query=is_query)
        except TimeoutError:
            what = f"took longer than {self._timeout_s:g} s for {len(texts)} texts"
        except (OSError, EOFError, ValueError):
            what = "ended, or could not be started" if self._process is None else await self._ending(self._process)
        except asyncio.CancelledError:  # its answer would be taken for the next batch's
            await self.aclose()
            raise
        await self.aclose()
        raise EmbedderError(f"the process of {self._package} {what}")

    async def aclose(self) -> None:
        """End the child. Harmless when there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()  # it keeps nothing
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.communicate()

    async def _start(self) -> None:
        await self.aclose()
        environment = {name: os.environ[name] for name in _TUNING if name in os.environ} | _ONE_THREAD
        self._process = await start_child(self._script, self._package, environment=environment)

    async def _exchange(self, texts: list[str], *, is_query: bool) -> list[memoryview]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EOFError
        process.stdin.write(json.dumps({"texts": texts, "isQuery": is_query}).encode() + b"\n")
        await process.stdin.drain()
        line: dict[str, Any] = json.loads(await process.stdout.readline())
        if error := line.get("error"):
            what = "cannot be imported" if error == "import" else f"failed ({error})"
            raise EmbedderError(f"{self._package} {what}; {GET_IT}")
        width = line.get("dimension", 0) * 4
        if line.get("count") != len(texts) or not 0 < width <= _MAX_DIMENSION * 4:
            raise ValueError("the child answers another batch")
        numbers = memoryview(await process.stdout.readexactly(len(texts) * width))
        return [numbers[place * width : (place + 1) * width] for place in range(len(texts))]

    async def _ending(self, process: asyncio.subprocess.Process) -> str:
        """What a child that broke off did. Its end is seen a moment after its pipes'."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await process.wait()
        code = process.returncode
        if code is None:
            return "gave no answer"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
