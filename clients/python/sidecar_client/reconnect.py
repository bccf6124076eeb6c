"""What has to be known to go on in a new process: the open sessions, how far each was seen, and what was tried."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, cast

from .types import JsonObject, ReplaySeq, RunEvent, SessionInfo

ATTEMPTS: Final = 3
"""New processes in a row that end in vain before a client gives up."""
PAUSE: Final = 0.5
"""Seconds before the second of them; as much more each time."""
SETTLED: Final = 10.0
"""Seconds that a process has to live before its end counts as the first one in a row."""


class Attempts:
    """The new processes since one was last of use: because it lived for a while, or answered a run.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._vain = 0
        self._began = clock()

    def next(self) -> float | None:
        """Count one more; gives the seconds to wait before it, or None where there were enough."""
        if self._vain == ATTEMPTS:
            return None
        self._vain += 1
        return PAUSE * (self._vain - 1)

    def began(self) -> None:
        """A process is ready."""
        self._began = self._clock()

    def ended(self) -> None:
        """The process that was ready has ended."""
        if self._clock() - self._began >= SETTLED:
            self._vain = 0

    def answered(self) -> None:
        """It has answered a run."""
        self._vain = 0


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

    @contextmanager
    def opening(self, params: JsonObject) -> Generator[Callable[[JsonObject], None], None, None]:
        """While a session is created or resumed with these params; call what this gives with the answer.

        The session is known before the answer is taken, because a replay's events come right behind it.
        """
        session_id: str | None = params.get("sessionId")
        before = self._seen.get(session_id or "")
        replay: JsonObject = params.get("replayFrom") or {}
        earlier: JsonObject = {} if before is None else before.supplied
        session = _Seen(replay.get("seq", 0), replay.get("epoch", ""), {**earlier, **_supplied(params)})
        if session_id is not None:
            self._seen[session_id] = session

        def opened(answer: JsonObject) -> None:
            nonlocal before
            info: SessionInfo = answer["session"]
            if replay.get("type", "none") == "none":
                session.seq = max(session.seq, answer["lastSeq"])
            session.epoch = info["epoch"]
            self._seen[info["sessionId"]] = before = session

        try:
            yield opened
        finally:
            if session_id is not None:
                if before is None:
                    self.closed(session_id)
                else:
                    self._seen[session_id] = before

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
    given: JsonObject = {key: params[key] for key in ("tools", "mcpServers") if params.get(key) is not None}
    if params.get("contextProviders") is None:
        return given
    entries = cast("list[dict[str, Any]]", params["contextProviders"])
    return {**given, "contextProviders": [entry for entry in entries if entry.get("type") == "host"]}
