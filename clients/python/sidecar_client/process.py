"""Runs the sidecar as a child: finds and spawns it, cuts its output into lines, writes to it. Knows no JSON-RPC."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from .errors import SidecarDied

CONSOLE_SCRIPT: Final = "agent-sidecar"
STDERR_LINES_KEPT: Final = 40
_STDIN, _STDOUT, _STDERR, _EXIT = 0, 1, 2, -1
_GRACE: Final = 1.0
"""Seconds between the first sign of the end and giving up on the rest: a grandchild may hold a pipe open for long."""


def find_command() -> list[str]:
    """The command that starts a sidecar: the console script beside this interpreter or on `PATH`, else the module.

    Only absolute entries of `PATH` count: others would find a program of the workspace. The module is run isolated,
    because a working directory with a folder `protocol` would be imported otherwise.
    """
    folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    for folder in filter(os.path.isabs, folders):
        if script := shutil.which(str(Path(folder, CONSOLE_SCRIPT))):
            return [script]
    return [sys.executable, "-I", "-m", "sidecar"]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with `extra` on top, without `PYTHONPATH`: it could shadow the sidecar's modules."""
    environment = {**os.environ, **(extra or {})}
    environment.pop("PYTHONPATH", None)
    return environment


class LineSplitter:
    """Cuts a stream of bytes at line feeds, in linear time, whatever the length of a line."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give the lines that `data` completes, without their line feeds."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._parts.append(piece)
            line = b"".join(self._parts)
            self._parts.clear()
            yield line
        if rest:
            self._parts.append(rest)


class SidecarProcess(asyncio.SubprocessProtocol):
    """A child process with line-wise output.

    Args:
        on_line: Called with each line of stdout, in order.
        on_end: Called once, when the process is gone or has closed its output.
        on_stderr: Called with each line of stderr. The last lines are kept in any case.
    """

    def __init__(
        self,
        on_line: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_stderr: Callable[[str], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_line = on_line
        self._on_end = on_end
        self._on_stderr = on_stderr
        self._splitters = {_STDOUT: LineSplitter(), _STDERR: LineSplitter()}
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES_KEPT)
        self._alive = {_STDOUT, _STDERR, _EXIT}
        self._ended = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.SubprocessTransport | None = None
        self._returncode: int | None = None

    async def start(self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]) -> None:
        """Spawn the command with pipes. It gets a process group of its own: a terminal's Ctrl-C is for the host.

        Raises:
            SidecarDied: The command cannot be started.
        """
        windows = sys.platform == "win32"
        try:
            await self._loop.subprocess_exec(
                lambda: self,
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=dict(env),
                start_new_session=not windows,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) if windows else 0,
            )
        except OSError as error:
            raise SidecarDied(f"cannot start {command[0]!r}: {error.strerror}; is agent-sidecar installed?") from error

    @property
    def pid(self) -> int:
        """The child's process id; 0 before it was started."""
        return self._transport.get_pid() if self._transport else 0

    @property
    def ended(self) -> bool:
        """Whether the process is gone or has closed its output."""
        return self._ended.is_set()

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs, or if it is not known."""
        return self._returncode

    def write(self, data: bytes) -> None:
        """Queue bytes for the child's stdin; never blocks.

        Raises:
            SidecarDied: The process has ended.
        """
        if self._transport is None or self.ended:
            raise self.death()
        stdin = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(_STDIN))
        if stdin is not None:
            stdin.write(data)

    async def drain(self) -> None:
        """Wait until the child has read most of what was written."""
        await self._writable.wait()

    def set_reading(self, reading: bool) -> None:
        """Stop or go on reading the child's stdout. After its exit what is left is read in any case."""
        pipe = self._transport.get_pipe_transport(_STDOUT) if self._transport else None
        pipe = cast("asyncio.ReadTransport | None", pipe)
        if pipe is None or pipe.is_closing():
            return
        if reading or _EXIT not in self._alive:
            pipe.resume_reading()
        else:
            pipe.pause_reading()

    def close_stdin(self) -> None:
        """Tell the child that nothing more will come."""
        stdin = self._transport.get_pipe_transport(_STDIN) if self._transport else None
        if stdin is not None:
            stdin.close()

    def kill(self) -> None:
        """End the child and its process group at once, by SIGKILL; harmless if it has ended."""
        if self._transport is not None and self._transport.get_returncode() is None:
            self._kill_group()

    async def wait(self) -> None:
        """Wait for the process's end."""
        await self._ended.wait()

    def death(self) -> SidecarDied:
        """The exception that tells of this process's end."""
        code = self._returncode
        if code is None:
            how = "closed its output"
        else:
            how = f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return SidecarDied(f"the sidecar {how}", code, "\n".join(self._stderr))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.SubprocessTransport", transport)  # other loops have classes of their own

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio."""
        for line in self._splitters[fd].feed(data):
            if fd == _STDOUT:
                self._on_line(line)
            else:
                self._keep_stderr(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._lost(fd)

    def process_exited(self) -> None:
        """Called by asyncio."""
        if self._transport is not None:
            self._returncode = self._transport.get_returncode()
        self._alive.discard(_EXIT)
        self.set_reading(True)
        self._lost(_EXIT)

    def pause_writing(self) -> None:
        """Called by asyncio."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Called by asyncio."""
        self._writable.set()

    def _keep_stderr(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self._stderr.append(text)
        if self._on_stderr is not None:
            self._on_stderr(text)

    def _lost(self, what: int) -> None:
        self._alive.discard(what)
        if not self._alive:
            self._finish()
        elif not {_STDOUT, _EXIT} <= self._alive:
            self._loop.call_later(_GRACE, self._finish)

    def _finish(self) -> None:
        if self.ended:
            return
        self._ended.set()
        self._writable.set()
        if self._alive & {_STDOUT, _EXIT}:  # of no more use; behind a wrapper that has ended it holds sessions still
            self._kill_group()
        if self._transport is not None:
            self._transport.close()
        self._on_end()

    def _kill_group(self) -> None:
        if self._transport is None:
            return
        with suppress(ProcessLookupError, PermissionError):  # it has ended in between, or is not ours to end
            if sys.platform == "win32":
                self._transport.kill()
            else:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
