"""Has a client replay every session when a conversation is over: what it hands on then has to be what it was live."""

from typing import Any, cast

from protocol.base import Json, JsonObject

from .findings import Finding
from .messages import short
from .player import NOT_REPLAYED, Events
from .shapes import members
from .talk import Stopped, Talk

_ALL: JsonObject = {"limit": 1000}


async def replay_all(talk: Talk, seen: Events, greeting: JsonObject | None) -> list[Finding]:
    """Replay every stored session; what came otherwise.

    Args:
        talk: The client; a sidecar is started where none runs.
        seen: The events that came live.
        greeting: The params of `initialize`, where a sidecar has to be started.

    Raises:
        Stopped: something is missing.
    """
    if not talk.running:
        talk.start()
        await talk.ask("initialize", greeting)
    findings = list[Finding]()
    for session_id in _ids(await talk.ask("listSessions", _ALL)):
        live = [event for _, event in sorted(seen[session_id].items())]
        findings += await _replay(talk, session_id, live)
    return findings + [Finding("client", f"in a replay: {text}") for text in talk.unexpected()]


def _ids(listed: Json) -> list[str]:
    """The sessions in the answer to 'listSessions'."""
    items = members(listed).get("sessions")
    found = [members(info).get("sessionId") for info in cast("list[Any]", items)] if isinstance(items, list) else [None]
    if not all(isinstance(each, str) for each in found):
        raise Stopped(f"the answer to 'listSessions' is handed on otherwise than it came: {short(listed)}")
    return cast("list[str]", found)


async def _replay(talk: Talk, session_id: str, live: list[JsonObject]) -> list[Finding]:
    await talk.ask("resumeSession", {"sessionId": session_id, "replayFrom": {"type": "start"}})
    for number, event in enumerate(live, 1):
        what = f"event {number} of {len(live)} in the replay of {session_id!r}"
        came: JsonObject = (await talk.event(what)).body["event"]
        bare = {key: value for key, value in came.items() if key not in NOT_REPLAYED}
        if bare != event:
            return [Finding("client", f"{what} is not what it was live:\n  live {event}\n  now {bare}"[:2000])]
    await talk.ask("getState", {"sessionId": session_id})
    return []
