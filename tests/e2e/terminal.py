"""A command on a terminal of its own, as a person has it: types, reads what is shown, presses Ctrl-C and Ctrl-D."""

import fcntl
import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
SECONDS = 30.0


def _take_terminal() -> None:
    """In the child: make the terminal its own, with a Ctrl-C that counts even where the test's own is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """The terminal; what was shown so far is in `shown`, without the sequences that colour it."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._ours, theirs = os.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**env, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self._raw = b""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def shown(self) -> str:
        text = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", "", self._raw.decode(errors="replace"))
        return text.replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def resting(self) -> None:
        """Wait until the command waits for a key: Python notices a signal that comes sooner with the next key only."""
        deadline = time.monotonic() + SECONDS
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline, f"it is always busy:\n{self.shown}"
            time.sleep(0.01)

    def expect(self, text: str) -> None:
        """Wait until this is shown, after what was expected before."""
        deadline = time.monotonic() + SECONDS
        while (found := self.shown.find(text, self._seen)) < 0:
            assert self._read(deadline), f"{text!r} is not shown:\n{self.shown}"
        self._seen = found + len(text)

    def end(self) -> int:
        """Wait for the command's end; gives its exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(deadline):
            pass
        return self._process.wait(SECONDS)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more is shown:\n{self.shown}"
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # the last one at the other end has left
            return False
        self._raw += data
        return bool(data)
