"""Programs of ours in processes of their own: for work that may not end, may crash, or would hold up all threads.

Of the environment a child is told what a program needs to start: keys stay here.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_INHERITED: Final = (
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR",
)  # fmt: skip


class NoAnswer(Exception):
    """The child ended without an answer: it crashed, or used up what it was given."""


async def start_child(
    script: Path, *arguments: str, with_packages: bool = True, environment: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Run a file with this Python, its input and output as pipes.

    Args:
        script: The file.
        arguments: Its arguments.
        with_packages: Whether it can import what is installed; without, it starts sooner.
        environment: Variables beside those that each program needs.

    Raises:
        OSError: it could not be started.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *(["-I"] if with_packages else ["-I", "-S"]),
        str(script),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(environment or {}),
        start_new_session=True,  # Ctrl-C in a terminal is the parent's to handle
    )


async def ask_child(script: Path, *arguments: str, data: bytes, with_packages: bool = False) -> dict[str, Any]:
    """Run a file, give it all its input, and return the one JSON object that it answers.

    A caller that is cancelled, by a time limit for example, leaves no child behind.

    Raises:
        NoAnswer: it ended without one.
        OSError: it could not be started.
    """
    process = await start_child(script, *arguments, with_packages=with_packages)
    try:
        told, _ = await process.communicate(data)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        return json.loads(told)
    except ValueError:
        raise NoAnswer from None
