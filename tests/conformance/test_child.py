"""A driver's process: its end is told though others keep its pipes, and it cannot say more than can be kept."""

import os
import signal
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from sidecar.cli.conformance import child as child_module
from sidecar.cli.conformance.child import Child
from sidecar.cli.conformance.news import News

PATIENCE_S: Final = 20.0


class Heard:
    """A shell script, and what it said."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.news = News(PATIENCE_S)
        self.child = Child(self.lines.append, self.news.tell)

    async def over(self) -> str:
        return await self.news.until(lambda: self.child.over)

    async def line(self, number: int) -> bytes:
        return await self.news.until(lambda: self.lines[number] if len(self.lines) > number else None)


@asynccontextmanager
async def running(script: str) -> AsyncGenerator[Heard, None]:
    heard = Heard()
    await heard.child.start(["sh", "-c", script], dict(os.environ))
    try:
        yield heard
    finally:
        await heard.child.kill()


async def test_it_is_heard_line_by_line_to_its_last_words_and_its_exit_code() -> None:
    async with running("read word; echo $word; printf 'no end'; echo why >&2; exit 3") as heard:
        heard.child.write(b"hello\n")

        assert await heard.over() == "the driver has ended (exit code 3)\n  | why"
        assert heard.lines == [b"hello", b"no end"]


@pytest.fixture
def detached(tmp_path: Path) -> str:
    """The beginning of a script: somebody in a session of its own keeps the pipes."""
    return f"setsid sleep 60 & echo $! > {tmp_path / 'pid'}; "


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Iterator[None]:
    yield
    if (pid := tmp_path / "pid").exists():
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_its_end_is_told_while_a_detached_grandchild_keeps_its_pipes(detached: str) -> None:
    async with running(f"{detached} echo last; exit 4") as heard:
        assert await heard.over() == "the driver has ended (exit code 4)"
        assert heard.lines == [b"last"]
        assert await heard.child.end(0)


async def test_letting_go_of_it_waits_for_no_grandchild(detached: str) -> None:
    async with running(f"{detached} echo here; sleep 60") as heard:
        await heard.line(0)
        began = time.monotonic()

    assert time.monotonic() - began < PATIENCE_S
    assert heard.child.exit_code == -signal.SIGKILL


async def test_one_that_does_not_end_is_waited_for_in_bounds() -> None:
    async with running("echo here; exec sleep 60") as heard:
        await heard.line(0)

        assert not await heard.child.end(0.01)
        assert heard.child.over is None


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("yes", "the driver says more than 1000 lines"),
        ("tr '\\0' x < /dev/zero", "the driver says more than 1 MiB"),
    ],
)
async def test_one_that_floods_is_not_listened_to_any_longer(
    script: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "MOST_LINES", 1000)
    monkeypatch.setattr(child_module, "MOST_BYTES", 1 << 20)

    async with running(script) as heard:
        assert await heard.over() == why
        kept = len(heard.lines)
        assert await heard.child.end(PATIENCE_S)  # by a pipe that is closed
        assert heard.child.over == why
        assert len(heard.lines) == kept


async def test_what_it_says_on_stderr_is_kept_by_its_end_only() -> None:
    async with running("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo; echo; echo last >&2; exit 1") as heard:
        told = await heard.over()

    assert told.endswith("xxxlast")
    assert len(told) < 10_000
