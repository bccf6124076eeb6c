"""Plays a golden conversation through a driver, and compares what it hands on. The wire's own rules are not here."""

from collections import Counter, defaultdict
from typing import Any, Final, cast

from protocol.base import JsonObject
from protocol.methods import CANCEL_REQUEST, RUN_EVENT

from .conversations import Conversation, Line
from .findings import Finding
from .matching import Matcher
from .talk import Stopped, Talk
from .wire import Mark, mark

NOT_REPLAYED: Final = frozenset({"prevSeq", "_meta"})
"""What a replayed event may have otherwise than the live one."""

Events = dict[str, dict[int, JsonObject]]
"""Session → number → durable event, without what a replay may change."""


class Player:
    """One conversation, played once.

    Attributes:
        findings: What was not as it is written.
        seen: The durable events that were handed on, as first seen.
        greeting: The params of the first `initialize`.
    """

    def __init__(self, conversation: Conversation, talk: Talk, matcher: Matcher) -> None:
        self.findings: list[Finding] = []
        self.seen: Events = defaultdict(dict)
        self.greeting: JsonObject | None = None
        self._lines = conversation.lines
        self._talk = talk
        self._matcher = matcher
        self._completed: dict[str, int] = {}
        """Runs → where in all that was said their end was."""
        self._begin()

    def _begin(self) -> None:
        """A new sidecar."""
        self._calls: dict[str | int, int] = {}
        self._asked: dict[str | int, int] = {}
        self._due = Counter[Mark]()
        self._silent: Line | None = None
        """The last line, if a driver need not speak of it."""

    async def play(self) -> None:
        """Play all of it.

        Raises:
            Stopped: something is missing or wrong, so that nothing after it can be right.
        """
        for line in self._lines:
            if line.kind == "←":
                await self._hear(line)
            elif line.kind != "#":
                await self._act(line)
        await self._catch_up()
        self.findings += [Finding("client", text) for text in self._talk.unexpected()]

    # ---- acting ---------------------------------------------------------------------------------------------------

    async def _act(self, line: Line) -> None:
        await self._catch_up()
        if not self._talk.running:
            self._begin()
            self._talk.start()
        if line.kind == "→":
            self._say(self._matcher.fill(line.value))
        elif line.kind == "kill":
            await self._talk.kill(line.value)
        elif line.kind == "exit" and (code := await self._talk.end()) != line.value:
            self._blame(line, f"the sidecar ended with {code}, not {line.value}")

    async def _catch_up(self) -> None:
        """Wait for what came last on the wire, if the driver did not have to speak of it."""
        if self._silent is not None:
            due = mark(self._silent.value)
            await self._talk.passed(due, self._due[due], f"line {self._silent.number}: {self._silent.text()[:300]}")

    def _say(self, message: JsonObject) -> None:
        method, params = message.get("method"), message.get("params")
        if method is None:
            number = self._asked[message["id"]]
            self._talk.reply(number, {key: message[key] for key in ("result", "error") if key in message})
        elif method == CANCEL_REQUEST.name:
            self._talk.cancel(self._calls[message["params"]["id"]])
        elif "id" in message:
            if method == "initialize" and self.greeting is None:
                self.greeting = params or {}
            self._calls[message["id"]] = self._talk.call(method, params)
        else:
            self._talk.notify(method, params)

    # ---- hearing --------------------------------------------------------------------------------------------------

    async def _hear(self, line: Line) -> None:
        message: JsonObject = line.value
        self._due[mark(message)] += 1
        self._silent = None
        what = f"line {line.number}: {line.text()[:300]}"
        if "method" not in message:
            await self._hear_answer(line, what)
        elif "id" in message:
            said = await self._talk.asked(what)
            self._asked[message["id"]] = said.body["asked"]
            self._compare(line, _part(message, "method", "params"), _part(said.body, "method", "params"))
        elif message["method"] == RUN_EVENT and not message["params"].get("ephemeral"):
            said = await self._talk.event(what)
            event: JsonObject = said.body["event"]
            self._compare(line, message["params"], event)
            self._note(line, event)
            if event["type"] == "run.completed":
                self._completed[event["runId"]] = said.position
        else:
            self._silent = line

    async def _hear_answer(self, line: Line, what: str) -> None:
        message: JsonObject = line.value
        said = await self._talk.answer(self._calls[message["id"]], what)
        self._compare(line, _part(message, "result", "error"), _part(said.body, "result", "error"))
        run = _run_of(said.body)
        if said.position < self._completed.get(run, 0):
            self._blame(line, f"the answer to the run {run!r} is handed on before its 'run.completed'")

    def _note(self, line: Line, event: JsonObject) -> None:
        """Keep what a replay has to bring again, and hold a replay in the conversation against it."""
        bare = {key: value for key, value in event.items() if key not in NOT_REPLAYED}
        if self.seen[event["sessionId"]].setdefault(event["seq"], bare) != bare:
            self._blame(line, f"the event {event['seq']} of {event['sessionId']!r} is not what it was before")

    def _compare(self, line: Line, expected: JsonObject, came: JsonObject) -> None:
        where = self._matcher.differs(expected, came)
        if where is not None:
            raise Stopped(f"line {line.number}: {where}\n  expected {expected}\n  but came {came}"[:2000])

    def _blame(self, line: Line, text: str) -> None:
        self.findings.append(Finding("client", f"line {line.number} of the conversation: {text}"))


def _run_of(answer: JsonObject) -> str:
    """The run that an answer is about; empty if it is about none."""
    about: Any = answer.get("result") or answer.get("error", {}).get("data")
    return cast("JsonObject", about).get("runId", "") if isinstance(about, dict) else ""


def _part(message: JsonObject, *keys: str) -> JsonObject:
    return {key: message[key] for key in keys if key in message}
