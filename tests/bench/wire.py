"""A strict parser of what the sidecar writes: byte counts, one JSON object a frame, nothing in between. Tests only."""

import json
from typing import Any, Literal

from protocol.events import EPHEMERAL, EVENTS, RunEvent

Framing = Literal["header", "ndjson"]
Json = dict[str, Any]


def encode(message: Json | list[Any], framing: Framing) -> bytes:
    """One message as a host sends it, in raw UTF-8."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if framing == "header" else body + b"\n"


class StrictParser:
    """Cuts the sidecar's output into messages. Anything that is not exactly a frame fails the test."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._rest = b""

    def feed(self, data: bytes) -> list[Json]:
        """The messages that are whole now."""
        self._rest += data
        found: list[Json] = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def finish(self) -> None:
        """The output has ended."""
        assert not self._rest, f"stdout ends inside a frame: {self._rest[:200]!r}"

    def _next(self) -> Json | None:
        if self._framing == "ndjson":
            line, newline, rest = self._rest.partition(b"\n")
            if not newline:
                return None
            self._rest = rest
            return _object(line)
        header, blank, rest = self._rest.partition(b"\r\n\r\n")
        if not blank:
            assert b"Content-Length: ".startswith(self._rest[:16]) or self._rest.startswith(b"Content-Length: "), (
                f"no frame: {self._rest[:200]!r}"
            )
            return None
        name, _, length = header.partition(b": ")
        assert name == b"Content-Length", f"no frame: {header[:200]!r}"
        assert length.isdigit(), f"no frame: {header[:200]!r}"
        if len(rest) < int(length):
            return None
        self._rest = rest[int(length) :]
        return _object(rest[: int(length)])


def _object(body: bytes) -> Json:
    message = json.loads(body.decode("utf-8"))
    assert isinstance(message, dict), f"no object: {body[:200]!r}"
    assert message["jsonrpc"] == "2.0"
    return message


class EventChecker:
    """Holds the events of every session against the contract: shapes, numbers, chain, one end a run."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._sub: dict[str, int] = {}
        self._ended: set[tuple[str, str]] = set()

    def answered(self, session_id: str, last_seq: int) -> None:
        """`createSession` or `resumeSession` told where the session is."""
        self._last[session_id] = last_seq

    def replaying_from(self, session_id: str, seq: int) -> None:
        """What follows is a replay from a cursor."""
        self._last[session_id] = seq
        self._ended = {(session, run) for session, run in self._ended if session != session_id}

    def check(self, event: Json) -> None:
        """One event, in the order of arrival."""
        RunEvent.model_validate(event)
        shape = EVENTS[event["type"]]
        data = shape.model_validate(event["data"])
        known = {field.alias for field in shape.model_fields.values()}
        assert set(event["data"]) <= known, f"{event['type']} has unknown fields: {set(event['data']) - known}"
        assert data is not None
        session, run = event["sessionId"], event.get("runId")
        if run is not None:
            assert (session, run) not in self._ended, f"an event after run.completed: {event}"
        if event.get("ephemeral"):
            assert event["type"] in EPHEMERAL or event["type"] == "run.completed"
            assert event["sub"] >= 1
        else:
            assert event["type"] not in EPHEMERAL
            assert "sub" not in event
            if session in self._last:
                assert event["prevSeq"] == self._last[session], f"broken chain: {event}"
                assert event["seq"] > self._last[session]
            self._last[session] = event["seq"]
        if event["type"] == "run.completed":
            self._ended.add((session, run))
