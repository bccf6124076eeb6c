"""Holds the conversation that a page of the documentation shows with a real sidecar, byte for byte.

A block of `wire` is a part of it. `$` starts a sidecar, or kills it; `→` is sent as it stands there; `←` comes next, as
it stands there; where other messages come in between, there is a `…`. `eof` closes the sidecar's input; `exit N` waits
for its end. What differs each time is written the same. The first `→` settles the framing: lines of JSON, or frames,
whose header is written out, with its line ends as `\\r\\n`.

With `AGENT_SIDECAR_REWRITE_PAGES=1` the pages are written anew from what comes; then read the difference, line by line.
"""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.bench.handles import PATIENCE_S

REWRITE: Final = os.environ.get("AGENT_SIDECAR_REWRITE_PAGES") == "1"

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# ([\w./-]+\.\w+)\n")
_ID: Final = re.compile(r"\b(req|msg|run|ep|rule|ses)_[0-9a-f]{20}\b")
_NAME: Final = re.compile(r"\b(?:req|msg|run|ep|rule|ses)_\d{1,3}\b")
_ALIKE: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "2026-01-01T00:00:00.000000Z"),
    (re.compile(r'"(durationMs|uptimeMs|rssBytes)":[\d.]+'), r'"\1":0'),
    (re.compile(r'"cwd":"[^"]*"'), '"cwd":"/home/ada"'),
    (re.compile(r'"choices":\[[^]]*\]'), '"choices":[]'),
    (re.compile(r'"errorId":"[0-9a-f]{12}"'), '"errorId":"0123456789ab"'),
    (re.compile(r'"instanceId":"[0-9a-f]{16}"'), '"instanceId":"0123456789abcdef"'),
    (re.compile(r'"schemaHash":"sha256:[0-9a-f]{64}"'), '"schemaHash":"sha256:0"'),
    (re.compile(r'"version":"\d+\.\d+\.\d+"'), '"version":"0.1.0"'),
)
"""What differs from time to time, and how a page writes it."""

_LINE_END: Final = r"\r\n"
"""As a page writes it."""


class Differs(Exception):
    """The conversation went otherwise than the page says."""


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
        return _NAME.sub(lambda match: id_of.get(match[0], match[0]), line)

    def copy(self) -> "Names":
        """The same so far."""
        return Names(dict(self.name_of), self.counts.copy())

    def _name(self, match: re.Match[str]) -> str:
        if match[0] not in self.name_of:
            self.counts[match[1]] += 1
            self.name_of[match[0]] = f"{match[1]}_{self.counts[match[1]]}"
        return self.name_of[match[0]]


class Conversation:
    """What a page shows, held with sidecars in a folder."""

    def __init__(self, folder: Path, *, record: bool = False) -> None:
        """Begin.

        Args:
            folder: Where the sidecars work.
            record: Take what comes where it is the kind of message that is shown.
        """
        self.names = Names()
        self.held = 0
        """Messages that came as the page says."""
        self._folder = folder
        self._record = record
        self._sidecar: asyncio.subprocess.Process | None = None
        self._framed: bool | None = None

    async def line(self, line: str) -> str:
        """Go on by one line of a block; gives the line as it went.

        Raises:
            Differs: something else came.
        """
        mark, _, text = line.partition(" ")
        if line.startswith("$ kill -9"):
            await self.end(kill=True)
        elif mark == "$":
            await self.end()
            self._sidecar, self._framed = await self._started(text.split()), None
        elif mark == "→":
            return f"→ {self._send(text)}"
        elif mark in ("←", "…"):
            return f"{mark} {await self._expect(text, skipping=mark == '…')}"
        elif line == "eof":
            self._stdin().close()
        elif mark == "exit":
            await self._expect_end(int(text))
        else:
            raise Differs(f"what is this? {line}")
        return line

    async def end(self, *, kill: bool = False) -> None:
        """End the sidecar that is there."""
        sidecar, self._sidecar = self._sidecar, None
        if sidecar is None:
            return
        if kill and sidecar.returncode is None:
            sidecar.kill()
        async with asyncio.timeout(PATIENCE_S):
            await sidecar.communicate(b"")  # of None, stdin stays open

    # ---- saying ---------------------------------------------------------------------------------------------------

    def _stdin(self) -> asyncio.StreamWriter:
        if self._sidecar is None or self._sidecar.stdin is None:
            raise Differs("nothing was started")
        return self._sidecar.stdin

    def _send(self, text: str) -> str:
        if self._framed is None:
            self._framed = not text.startswith("{")
        if self._framed and self._record:
            text = _frame(text.rpartition(_LINE_END)[2])
        meant = self.names.meant(text)
        self._stdin().write((meant.replace(_LINE_END, "\r\n") if self._framed else f"{meant}\n").encode())
        return text

    # ---- hearing --------------------------------------------------------------------------------------------------

    async def _expect(self, expected: str, *, skipping: bool) -> str:
        passed: list[str] = []
        while True:
            came = await self._next(expected, passed)
            names = self.names.copy()
            written = self._written(names, came)
            if written == expected or (self._record and _mark(written) == _mark(expected)):
                self.names = names
                self.held += 1
                return written
            passed.append(written)
            if not skipping:
                raise Differs(f"expected\n{expected}\nbut there came\n{passed[-1]}")

    def _written(self, names: Names, came: str) -> str:
        """A message as the page writes it: a header tells the length of what is written."""
        body = names.written(came)
        return _frame(body) if self._framed else body

    async def _next(self, expected: str, passed: list[str]) -> str:
        if self._sidecar is None or self._sidecar.stdout is None:
            raise Differs("nothing was started")
        try:
            async with asyncio.timeout(PATIENCE_S):
                body = await self._body(self._sidecar.stdout)
        except (TimeoutError, asyncio.IncompleteReadError):
            body = b""
        if not body:
            raise Differs("there never came\n" + "\n".join([expected, "but", *passed]))
        return body.decode()

    async def _body(self, stdout: asyncio.StreamReader) -> bytes:
        if not self._framed:
            return (await stdout.readline()).removesuffix(b"\n")
        header = (await stdout.readuntil(b"\r\n\r\n")).decode()
        length = header.removeprefix("Content-Length: ").removesuffix("\r\n\r\n")
        if not length.isdigit():
            raise Differs(f"the header is {header!r}")
        return await stdout.readexactly(int(length))

    async def _expect_end(self, code: int) -> None:
        if self._sidecar is None or self._sidecar.stdout is None:
            raise Differs("nothing was started")
        async with asyncio.timeout(PATIENCE_S):
            rest = await self._sidecar.stdout.read()
            ended = await self._sidecar.wait()
        if rest or ended != code:
            raise Differs(f"expected its end with {code}, but it ended with {ended} after {rest!r}")

    async def _started(self, command: list[str]) -> asyncio.subprocess.Process:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
        own = {name: str(self._folder / "home") for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *command, cwd=self._folder, env={**kept, **own, "PATH": path}, stdin=pipe, stdout=pipe, limit=1 << 20
        )


@asynccontextmanager
async def conversation(folder: Path, *, record: bool = False) -> AsyncGenerator[Conversation]:
    """One that ends its sidecars."""
    talk = Conversation(folder, record=record)
    try:
        yield talk
    finally:
        await talk.end(kill=True)


async def hold(page: Path, folder: Path) -> int:
    """Write the files that a page shows, and hold its conversation, in the order of the page.

    Returns:
        How many messages came as the page says: all that it shows.

    Raises:
        Differs: it went otherwise than the page says.
    """
    text = _text(page)
    anew = list[str]()
    end = 0
    async with conversation(folder, record=REWRITE) as talk:
        for block in _BLOCK.finditer(text):
            language, code = block.groups()
            if language == "wire":
                went = [await talk.line(line) for line in _lines(code)]
                anew += [text[end : block.start(2)], *(re.sub("^… ", "…\n← ", f"{line}\n") for line in went)]
                end = block.end(2)
            elif name := _FILE.match(code):
                _put(folder / name[1], code)
    if REWRITE:
        _put(page, "".join([*anew, text[end:]]))
    return talk.held


def shown(page: Path) -> int:
    """How many messages of the sidecar a page shows."""
    blocks = _BLOCK.findall(_text(page))
    return sum(len(re.findall("^← ", code, re.MULTILINE)) for language, code in blocks if language == "wire")


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _put(file: Path, text: str) -> None:
    """Write it, into a folder that nobody else may write to: others are refused as folders of plug-ins."""
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _lines(code: str) -> Iterator[str]:
    """The lines of a block; a `…` is put before the `←` that it stands before."""
    lines = iter(code.splitlines())
    for line in lines:
        yield f"… {next(lines).removeprefix('← ')}" if line == "…" else line


def _frame(body: str) -> str:
    return f"Content-Length: {len(body.encode())}{_LINE_END}{_LINE_END}{body}"


def _mark(written: str) -> tuple[Any, ...]:
    """What tells one message of a conversation from another, whatever is in it."""
    message = json.loads(written.rpartition(_LINE_END)[2] if written.startswith("Content-Length") else written)
    params = message.get("params", {})
    data = params.get("data", {})
    own = (params.get(key) for key in ("type", "sessionId", "runId", "name", "sourceId"))
    return message.get("id"), message.get("method"), *own, *(data.get(key) for key in ("kind", "callId", "sourceId"))
