"""The page on hosts shows what goes over the wire: its conversation is held with a real sidecar, byte for byte.

A block of `wire` is a part of it. `$` starts a sidecar, or kills it; `→` is sent as it stands there; `←` comes next, as
it stands there; where other messages come in between, there is a `…`. What differs each time is written the same.
"""

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.bench.doc_pages import broken_links
from tests.bench.handles import PATIENCE_S

PAGE = Path(__file__).parents[2] / "docs" / "host-in-the-loop.md"

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# ([\w./-]+\.\w+)\n")
_ID: Final = re.compile(r"\b(req|msg|run|ep|rule)_[0-9a-f]{20}\b")
_NAME: Final = re.compile(r"\b(?:req|msg|run|ep|rule)_\d{1,3}\b")
_ALIKE: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "2026-01-01T00:00:00.000000Z"),
    (re.compile(r'"durationMs":[\d.]+'), '"durationMs":0'),
    (re.compile(r'"cwd":"[^"]*"'), '"cwd":"/home/ada"'),
    (re.compile(r'"choices":\[[^]]*\]'), '"choices":[]'),
)
"""What differs from time to time, and how the page writes it."""


@dataclass
class Names:
    """The ids of the sidecar's making, and what the page calls them: `req_1`, `req_2`, …"""

    name_of: dict[str, str] = field(default_factory=dict[str, str])
    counts: Counter[str] = field(default_factory=Counter[str])

    def written(self, line: str) -> str:
        """A line that came, as the page would write it."""
        for pattern, alike in _ALIKE:
            line = pattern.sub(alike, line)
        return _ID.sub(self._name, line)

    def meant(self, line: str) -> str:
        """A line of the page, as it is to be sent."""
        id_of = {name: each for each, name in self.name_of.items()}
        return _NAME.sub(lambda match: id_of[match[0]], line)

    def copy(self) -> "Names":
        """The same so far."""
        return Names(dict(self.name_of), self.counts.copy())

    def _name(self, match: re.Match[str]) -> str:
        if match[0] not in self.name_of:
            self.counts[match[1]] += 1
            self.name_of[match[0]] = f"{match[1]}_{self.counts[match[1]]}"
        return self.name_of[match[0]]


class Differs(Exception):
    """The conversation went otherwise than the page says."""


class Conversation:
    """What the page shows, held with sidecars in a folder."""

    def __init__(self, folder: Path) -> None:
        self.names = Names()
        self.held = 0
        """Messages that came as the page says."""
        self._folder = folder
        self._sidecar: asyncio.subprocess.Process | None = None

    async def line(self, line: str) -> None:
        """Go on by one line of a block.

        Raises:
            Differs: something else came.
        """
        mark, _, text = line.partition(" ")
        if line.startswith("$ kill -9"):
            await self.end(kill=True)
        elif mark == "$":
            await self.end()
            self._sidecar = await self._started(text.split())
        elif mark == "→" and self._sidecar is not None and self._sidecar.stdin is not None:
            self._sidecar.stdin.write(f"{self.names.meant(text)}\n".encode())
        elif mark in ("←", "…"):
            await self._expect(text, skipping=mark == "…")
        else:
            raise Differs(f"what is this? {line}")

    async def _expect(self, expected: str, *, skipping: bool) -> None:
        passed: list[str] = []
        while True:
            came = await self._next(expected, passed)
            names = self.names.copy()
            if self.fits(expected, names.written(came)):
                self.names = names
                self.held += 1
                return
            passed.append(names.written(came))
            if not skipping:
                raise Differs(f"expected\n{expected}\nbut there came\n{passed[-1]}")

    def fits(self, expected: str, came: str) -> bool:
        """Whether a message is the one of the page."""
        return expected == came

    async def _next(self, expected: str, passed: list[str]) -> str:
        assert self._sidecar is not None
        assert self._sidecar.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = await self._sidecar.stdout.readline()
        except TimeoutError:
            line = b""
        if not line:
            raise Differs("there never came\n" + "\n".join([expected, "but", *passed]))
        return line.decode().removesuffix("\n")

    async def _started(self, command: list[str]) -> asyncio.subprocess.Process:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
        own = {name: str(self._folder / "home") for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *command, cwd=self._folder, env={**kept, **own, "PATH": path}, stdin=pipe, stdout=pipe, limit=1 << 20
        )

    async def end(self, *, kill: bool = False) -> None:
        """End the sidecar that is there."""
        sidecar, self._sidecar = self._sidecar, None
        if sidecar is None:
            return
        if kill:
            sidecar.kill()
        async with asyncio.timeout(PATIENCE_S):
            await sidecar.communicate(b"")  # of None, stdin stays open


def blocks() -> Iterator[tuple[str, str]]:
    """The blocks of the page: language and text."""
    for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        yield match[1], match[2]


async def held(conversation: Conversation, folder: Path) -> None:
    """Write the page's files, and hold its conversation."""
    for language, text in blocks():
        if language == "wire":
            for line in joined(text):
                await conversation.line(line)
        elif name := _FILE.match(text):
            file = folder / name[1]
            file.parent.mkdir(mode=0o755, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def joined(text: str) -> Iterator[str]:
    """The lines of a block; a `…` is put before the `←` that it stands before."""
    lines = iter(text.splitlines())
    for line in lines:
        yield f"… {next(lines).removeprefix('← ')}" if line == "…" else line


@asynccontextmanager
async def conversation(folder: Path) -> AsyncIterator[Conversation]:
    """One that ends its sidecars."""
    talk = Conversation(folder)
    try:
        yield talk
    finally:
        await talk.end(kill=True)


async def test_the_page_s_conversation_goes_as_it_shows_it(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir(mode=0o755)

    async with conversation(folder) as talk:
        await held(talk, folder)

    wire = "".join(text for language, text in blocks() if language == "wire")
    assert talk.held == len(re.findall("^← ", wire, re.MULTILINE)) > 20
    for method in ("callTool", "beforeRun", "afterRun", "requestApproval", "elicit"):
        assert f'"method":"host/{method}"' in wire


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('← {"jsonrpc":"2.0","id":1,"result":{ "schema":{}}}', "expected"),
        ('… {"jsonrpc":"2.0","id":2,"result":{}}', "there never came"),
    ],
)
async def test_a_conversation_that_goes_otherwise_is_noticed(tmp_path: Path, line: str, why: str) -> None:
    async with conversation(tmp_path) as talk:
        await talk.line("$ agent-sidecar serve --store memory")
        await talk.line('→ {"jsonrpc":"2.0","id":1,"method":"initialize"}')
        await talk.line('→ {"jsonrpc":"2.0","id":7,"method":"shutdown"}')
        await talk.line('→ {"jsonrpc":"2.0","method":"exit"}')

        with pytest.raises(Differs, match=why):
            await talk.line(line)


def test_every_link_leads_somewhere() -> None:
    assert broken_links(PAGE) == []
