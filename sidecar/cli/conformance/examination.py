"""Examines a client: one conversation in one weather, played, replayed, and its wire held against the rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from .conversations import Conversation, Line
from .driver import Driver
from .findings import Finding
from .matching import Matcher
from .news import News
from .place import Weather, place
from .player import Player
from .replaying import replay_all
from .rules import check
from .talk import Stopped, Talk
from .wire import Wire


@dataclass(frozen=True)
class Outcome:
    """What came of one conversation in one weather."""

    weather: Weather
    findings: Sequence[Finding]
    log: Sequence[Line]
    """What passed over the wire."""


async def examine(conversation: Conversation, command: Sequence[str], weather: Weather, patience: float) -> Outcome:
    """Play one conversation.

    Args:
        conversation: What to play; it has no obstacle.
        command: The driver.
        weather: Whether the relay adds what a client has to bear.
        patience: Seconds to wait for each thing that has to come.

    Raises:
        OSError: there is no such driver.
    """
    news = News(patience)
    with place(weather) as where:
        async with Wire(where.wire, news) as wire, Driver(command, where, news) as driver:
            talk = Talk(driver, wire, news)
            player = Player(conversation, talk, Matcher(str(where.work)))
            findings = player.findings
            try:
                await player.play()
                if not findings:  # else a replay would show the same again
                    findings += await replay_all(talk, player.seen, player.greeting)
                findings += await _end(talk, driver)
            except Stopped as stopped:
                findings.append(Finding("client", str(stopped)))
            log = [*wire.lines]
    return Outcome(weather, [*findings, *check(log, conversation.refusals())], log)


async def _end(talk: Talk, driver: Driver) -> list[Finding]:
    code = await talk.end() if talk.running else 0  # a conversation may end it itself
    await talk.quiet()
    wrong = [f"the sidecar's exit code is {code} after 'shutdown' and 'exit', which is 0"] if code else []
    leaving = await driver.leave()
    return [Finding("client", text) for text in (*wrong, *([leaving] if leaving else []))]
