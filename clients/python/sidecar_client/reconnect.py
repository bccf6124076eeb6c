"""What has to be known to go on in a new process: the sessions that are open, and how far their events were seen."""

from dataclasses import dataclass
from typing import Any, Final, cast

from sidecar_client.types import JsonObject, ReplaySeq, RunEvent

ATTEMPTS: Final = 3
"""Processes that are started, one after the other, before a client gives up."""
PAUSE: Final = 0.5
"""Seconds before the second of them; one more each time."""


@dataclass
class _Seen:
    """One open session."""

    seq: int
    epoch: str
    supplied: JsonObject
    """What `resumeSession` wants to be given again: the host's tools, its providers, its MCP servers."""


class OpenSessions:
    """The sessions that this client has opened, each with the last durable event that came of it."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._seen

    def opened(self, params: JsonObject, answer: JsonObject) -> None:
        """A session was created or resumed with these params."""
        session = answer["session"]
        replay: JsonObject = params.get("replayFrom") or {}
        last = {"start": 0, "seq": replay.get("seq", 0)}.get(replay.get("type", "none"), answer["lastSeq"])
        self._seen[session["sessionId"]] = _Seen(last, session["epoch"], _supplied(params))

    def closed(self, session_id: str) -> None:
        """A session is open no longer; harmless if it was not."""
        self._seen.pop(session_id, None)

    def saw(self, event: RunEvent) -> None:
        """An event has come."""
        session = self._seen.get(event["sessionId"])
        if session is not None and "ephemeral" not in event:
            session.seq, session.epoch = event["seq"], event["epoch"]

    def skip_to(self, session_id: str, answer: JsonObject) -> None:
        """The events up to here cannot be had any more."""
        session = self._seen[session_id]
        session.seq, session.epoch = answer["lastSeq"], answer["session"]["epoch"]

    def resumptions(self) -> dict[str, JsonObject]:
        """Session id → the params of the `resumeSession` that brings what was missed."""
        return {session_id: self._resumption(session_id, session) for session_id, session in self._seen.items()}

    def _resumption(self, session_id: str, session: _Seen) -> JsonObject:
        cursor = ReplaySeq(type="seq", seq=session.seq, epoch=session.epoch)
        return {**session.supplied, "sessionId": session_id, "replayFrom": cursor}


def _supplied(params: JsonObject) -> JsonObject:
    """The host's own parts, which a sidecar never restores by itself."""
    given: JsonObject = {key: params[key] for key in ("tools", "mcpServers") if params.get(key)}
    entries = cast("list[dict[str, Any]]", params.get("contextProviders") or [])
    providers = [entry for entry in entries if entry.get("type") == "host"]
    return {**given, "contextProviders": providers} if providers else given
