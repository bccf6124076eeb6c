"""Plays a golden conversation against a real sidecar, or records it anew. Its format: `tests/transcripts/README.md`.

player = Player(lines, start, folder)     # `start` gives a sidecar that has been told nothing
came = await player.play()                # raises `Differs` at the first line that is not as expected
player.seen["s"]                          # the durable events of a session, by their numbers
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from sidecar.cli.conformance.conversations import Line
from sidecar.cli.conformance.matching import Matcher
from sidecar.cli.conformance.placeholders import ANY, Placeholders
from tests.bench.handles import PATIENCE_S
from tests.bench.host import FakeHost, HostGone
from tests.bench.wire import Json

_OPENING: Final = ("createSession", "resumeSession")
"""Asked through the host, which then knows with which number a session's events go on."""

_NOT_REPLAYED: Final = frozenset({"prevSeq", "_meta"})


class Differs(Exception):
    """The conversation did not go as it is written; the message names the line and the place in it."""


def write(path: Path, lines: Sequence[Line]) -> None:
    """Put a recorded conversation in the place of the old one."""
    path.write_text("".join(f"{line.text()}\n" for line in lines), encoding="utf-8")


def durable(messages: Sequence[Json]) -> Iterator[Json]:
    """The events among them that a replay brings again, without what a replay may change."""
    for message in messages:
        event = message["params"] if message.get("method") == "run/event" else {"ephemeral": True}
        if not event.get("ephemeral"):
            yield {key: value for key, value in event.items() if key not in _NOT_REPLAYED}


class Player:
    """One conversation, played once."""

    def __init__(
        self, lines: Sequence[Line], start: Callable[[], Awaitable[FakeHost]], folder: Path, *, record: bool = False
    ) -> None:
        """Say what to play.

        Args:
            lines: The conversation.
            start: Starts a sidecar on the conversation's store, in `folder`; nothing is said to it yet.
            folder: Where the sidecar works.
            record: Take what comes instead of comparing it.
        """
        self.host: FakeHost | None = None
        """The sidecar that was started last; none after it has ended."""
        self.seen: dict[str, dict[int, Json]] = defaultdict(dict)
        """Session → sequence number → durable event, as first seen."""
        self._lines = lines
        self._start = start
        self._matcher = Matcher(str(folder))
        self._names = Placeholders(str(folder))
        self._record = record
        self._taken = 0
        self._played: list[Line] = []

    async def play(self) -> list[Line]:
        """Play all of it. The lines as they went: what was said as it is written, what came with placeholders.

        Raises:
            Differs: something else came, or less, or more.
        """
        expected = list[Line]()
        for line in self._lines:
            if line.kind == "←":
                expected.append(line)
                continue
            await self._hear(expected)
            expected = []
            if line.kind != "#":
                await self._act(line)
            self._played.append(line)
        await self._hear(expected)
        self._nothing_more()
        return self._played

    # ---- acting ---------------------------------------------------------------------------------------------------

    async def _act(self, line: Line) -> None:
        if self.host is None:
            self.host, self._taken = await self._start(), 0
        if line.kind == "→":
            self._say(self.host, line.value)
        elif line.kind == "eof":
            self.host.hang_up()
        else:
            if line.kind == "kill":
                self.host.may_be_cut = True
                self.host.kill(line.value)
            code = await self.host.wait()
            self._nothing_more()
            if line.kind == "exit" and code != line.value:
                raise Differs(f"line {line.number}: the sidecar ended with {code}, not {line.value}")
            self.host = None

    def _say(self, host: FakeHost, value: Any) -> None:
        if isinstance(value, str):
            body = value.encode()
            host.write(
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if host.framing == "header" else body + b"\n"
            )
            return
        message = self._matcher.fill(value)
        self._names.keep(message)
        if isinstance(message, dict) and message.get("method") in _OPENING:
            host.ask(message["method"], message.get("params"), request_id=message["id"])
        else:
            host.send({"jsonrpc": "2.0", **message} if isinstance(message, dict) else message)

    # ---- hearing --------------------------------------------------------------------------------------------------

    async def _hear(self, expected: Sequence[Line]) -> None:
        """Take as much as is expected, in the order of arrival."""
        if self._record:
            await self._hear_all_up_to(expected)
            return
        for line in expected:
            came = await self._next(line)
            where = self._matcher.differs(line.value, came)
            if where is not None:
                raise Differs(f"line {line.number}: {where}\n  expected {line.text()}\n  but came {_short(came)}")
            self._played.append(line)

    async def _hear_all_up_to(self, expected: Sequence[Line]) -> None:
        """Record until what came matches the last line: the same answer, or as many events of that type."""
        if not expected:
            return
        last = _mark(expected[-1].value)
        missing = [_mark(line.value) for line in expected].count(last)
        whatever = [_mark(line.value) for line in expected if line.value.get("result") == ANY]
        while missing:
            came = await self._next(expected[-1])
            written = self._names.mask(came)
            self._matcher.differs(written, came)  # from now on its names have values
            mark = _mark(written)
            missing -= mark == last
            self._played.append(Line("←", {**written, "result": ANY} if mark in whatever else written, 0))

    async def _next(self, line: Line) -> Json:
        host = self.host
        if host is None:
            raise Differs(f"line {line.number}: nothing has been said yet")
        try:
            message = (await host.until(lambda: host.messages[self._taken : self._taken + 1]))[0]
        except (TimeoutError, HostGone) as error:
            why = f"nothing came for {PATIENCE_S} s" if isinstance(error, TimeoutError) else f"it ended: {error}"
            raise Differs(f"line {line.number}: {why}\n  expected {line.text()}") from error
        self._taken += 1
        self._note(message)
        return {key: value for key, value in message.items() if key != "jsonrpc"}

    def _note(self, message: Json) -> None:
        """Keep what a replay has to bring again, and hold a replay in the conversation against it."""
        for event in durable([message]):
            known = self.seen[event["sessionId"]].setdefault(event["seq"], event)
            if known != event:
                raise Differs(f"a replay differs: {self._matcher.differs(known, event)}")

    def _nothing_more(self) -> None:
        rest = self.host.messages[self._taken :] if self.host is not None else []
        if rest:
            raise Differs(f"{len(rest)} messages are not expected, the first one: {_short(rest[0])}")


def _mark(message: Json) -> tuple[Any, ...]:
    """What tells one message of a conversation from another: its id, or the type and the run of an event."""
    params = message.get("params", {}) if "id" not in message else {}
    return message.get("id"), message.get("method"), params.get("type"), params.get("runId")


def _short(message: Json) -> str:
    return json.dumps({"←": message}, ensure_ascii=False)[:2000]
