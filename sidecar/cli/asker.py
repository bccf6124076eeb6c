"""Asks a person for a line on the terminal while a run goes on. Knows nothing of what is asked."""

import asyncio
import os
import sys
from typing import Final

from .output import Output, stderr

_LINE_BYTES: Final = 4_096
"""More than this a terminal does not take as one line."""


class Asker:
    """Shows on stderr and reads from stdin, one question at a time. The loop goes on meanwhile.

    Attributes:
        out: Where the questions are shown.
    """

    def __init__(self) -> None:
        self.out: Output = stderr()

    async def ask(self, prompt: str) -> str:
        """What is typed; empty at the end of the input. Where the wait is cancelled, the question stays unanswered."""
        loop = asyncio.get_running_loop()
        terminal = sys.stdin.fileno()
        _forget_typed(terminal)
        self.out.write(prompt)
        answer: asyncio.Future[str] = loop.create_future()
        loop.add_reader(terminal, _read, terminal, answer)
        try:
            line = await answer
        except asyncio.CancelledError:
            self.out.line("\n  the question was taken back", "dim")
            raise
        finally:
            loop.remove_reader(terminal)
        if not line.endswith("\n"):
            self.out.line()
        return line.strip()


def can_ask() -> bool:
    """Whether a person is there who sees the question and can type: not on Windows, whose loop cannot wait for keys."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stderr.isatty()


def _read(terminal: int, answer: "asyncio.Future[str]") -> None:
    if answer.done():
        return
    try:
        data = os.read(terminal, _LINE_BYTES)
    except OSError:  # the terminal has gone
        data = b""
    answer.set_result(data.decode(errors="replace"))


def _forget_typed(terminal: int) -> None:
    """What was typed before a question is shown is no answer to it."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(terminal, termios.TCIFLUSH)
