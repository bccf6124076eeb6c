"""Tells a driver what to do, and waits for what it has to say. What that should be is not known here."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from protocol.base import Json, JsonObject

from .driver import Driver, Said
from .news import News
from .weather import is_weather
from .wire import Mark, Wire

T = TypeVar("T")

_LONGEST: Final = 2000
"""Characters of a finding."""


class Stopped(Exception):
    """The conversation cannot go on; the message says what is missing."""


class Talk:
    """A driver, and what was heard of it.

    Attributes:
        running: Whether a sidecar was started and has not ended.
    """

    def __init__(self, driver: Driver, wire: Wire, news: News) -> None:
        self.running = False
        self._driver = driver
        self._wire = wire
        self._news = news
        self._calls = 0
        self._events = self._asked = self._ended = 0

    # ---- what it is to do -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a sidecar."""
        self.running = True
        self._driver.tell({"start": {}})

    def call(self, method: str, params: JsonObject | None = None) -> int:
        """Send a request; gives the number under which its answer is waited for."""
        self._calls += 1
        self._driver.tell({"call": self._calls, "method": method, **({} if params is None else {"params": params})})
        return self._calls

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification."""
        self._driver.tell({"notify": method, **({} if params is None else {"params": params})})

    def reply(self, number: int, answer: JsonObject) -> None:
        """Answer a request of the sidecar's: with a `result`, or an `error`."""
        self._driver.tell({"reply": number, **answer})

    def cancel(self, number: int) -> None:
        """Cancel a call."""
        self._driver.tell({"cancel": number})

    async def end(self) -> int | None:
        """Shut the sidecar down; gives its exit code."""
        self._driver.tell({"end": True})
        return await self._end()

    async def kill(self, signal_number: int) -> None:
        """Have the sidecar die under the client."""
        self._wire.kill(signal_number)
        await self._end()

    # ---- what it says ---------------------------------------------------------------------------------------------

    async def answer(self, number: int, what: str) -> Said:
        """What it says of a call's answer.

        Args:
            number: The call.
            what: How to name the answer where it is missing.

        Raises:
            Stopped: it says nothing; so for the others.
        """
        return (await self._until(lambda: self._driver.answers.get(number), what))[0]

    async def ask(self, method: str, params: JsonObject | None = None) -> Json:
        """Send a request and wait for its result."""
        body = (await self.answer(self.call(method, params), f"the answer to {method!r}")).body
        if "error" in body:
            raise Stopped(f"{method!r} was answered with an error: {body['error']}"[:_LONGEST])
        return body.get("result")

    async def event(self, what: str) -> Said:
        """The next durable event."""
        said = await self._until(lambda: _at(self._driver.events, self._events), what)
        self._events += 1
        return said

    async def asked(self, what: str) -> Said:
        """The next request of the sidecar's."""
        said = await self._until(lambda: _at(self._known_asked(), self._asked), what)
        self._asked += 1
        return said

    async def passed(self, mark: Mark, count: int, what: str) -> None:
        """Wait until so many messages of a kind have come over the wire, whether it speaks of them or not."""
        await self._until(lambda: True if self._wire.came[mark] >= count else None, what)

    async def quiet(self) -> None:
        """Wait until nothing more can come over the wire."""
        await self._until(lambda: True if self._wire.quiet else None, "the end of the executable that was started")

    def unexpected(self) -> list[str]:
        """What it said beyond what was waited for."""
        nonsense = self._driver.nonsense
        events, asked = self._driver.events[self._events :], self._known_asked()[self._asked :]
        found = [
            *([f"it says what is none of a driver's lines: {nonsense}"] if nonsense is not None else []),
            *(f"an event is handed on that was not sent, or not then: {said.body}" for said in events[:1]),
            *(f"a request is handed on that was not sent, or not then: {said.body}" for said in asked[:1]),
        ]
        for number, answers in self._driver.answers.items():
            if len(answers) > 1 or not 0 < number <= self._calls:
                found.append(f"call {number} has {len(answers)} answers: {[said.body for said in answers[:2]]}")
                break
        return [text[:_LONGEST] for text in found]

    def _known_asked(self) -> Sequence[Said]:
        return [said for said in self._driver.asked if not is_weather(said.body.get("method"))]

    async def _end(self) -> int | None:
        said = await self._until(lambda: _at(self._driver.ended, self._ended), "the report that the sidecar has ended")
        self._ended += 1
        self.running = False
        return said.body["ended"]

    async def _until(self, look: Callable[[], T | None], what: str) -> T:
        def found() -> T | None:
            seen = look()
            if seen is None and (gone := self._driver.over or self._sidecar_death()):
                raise Stopped(f"{what}: it is not there, and {gone}")
            return seen

        try:
            return await self._news.until(found)
        except TimeoutError:
            raise Stopped(f"{what}: it has not come within {self._news.patience:g} s{self._hint()}") from None

    def _sidecar_death(self) -> str | None:
        ended = _at(self._driver.ended, self._ended)
        return None if ended is None else f"the sidecar has ended (exit code {ended.body['ended']})"

    def _hint(self) -> str:
        nonsense = self._driver.nonsense
        return "" if nonsense is None else f"\n{nonsense}: this is none of a driver's lines"


def _at(said: Sequence[Said], place: int) -> Said | None:
    return said[place] if place < len(said) else None
