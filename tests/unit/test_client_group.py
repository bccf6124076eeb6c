"""What ends with the sidecar where a wrapper has started it: all of the process group, whichever end it comes to."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import uvloop

from sidecar_client import SidecarClient

FAKE = shlex.join([sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))])
LOOPS = pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


def wrapper(folder: Path, script: str) -> list[str]:
    path = folder / "wrapper"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return [str(path)]


def held(folder: Path) -> tuple[Path, int]:
    """A pipe by name, to be held open by whoever is watched, and its other end."""
    path = folder / "held"
    os.mkfifo(path)
    return path, os.open(path, os.O_RDONLY | os.O_NONBLOCK)


async def gone(pipe: int) -> None:
    """Waits until every process that holds the other end of a pipe has ended."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe, ended.set)
    try:
        await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(pipe)
    assert os.read(pipe, 1) == b""


def ends(factory: Loop, folder: Path, script: str, act: Callable[[SidecarClient], Coroutine[None, None, None]]) -> None:
    """Starts a sidecar by a script and does something to it: then everything that the script has started has to end."""
    path, pipe = held(folder)

    async def talk() -> None:
        command = wrapper(folder, f"exec 3> {path}\n{script}")
        async with asyncio.timeout(10), SidecarClient.start(command=command) as client:
            await act(client)
            await gone(pipe)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(talk())
    os.close(pipe)


@LOOPS
def test_a_kill_ends_what_the_wrapper_has_started_too(factory: Loop, tmp_path: Path) -> None:
    async def kill(client: SidecarClient) -> None:
        client.kill()
        await client.wait_ended()

    ends(factory, tmp_path, f"sleep 60 > /dev/null 2>&1 < /dev/null &\n{FAKE}", kill)


@LOOPS
def test_a_wrapper_that_is_killed_alone_leaves_no_sidecar_behind(factory: Loop, tmp_path: Path) -> None:
    async def kill_wrapper(client: SidecarClient) -> None:
        hanging = asyncio.ensure_future(client.request("hang"))
        await asyncio.sleep(0)
        os.kill(client.pid, signal.SIGKILL)
        await client.wait_ended()
        await asyncio.wait([hanging])
        assert hanging.exception() is not None

    ends(factory, tmp_path, f"{FAKE}\nexit $?", kill_wrapper)
