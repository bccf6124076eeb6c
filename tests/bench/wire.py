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
        self._next = self._framed if framing == "header" else self._line
        self._rest = bytearray()
        self._searched = 0
        self._length: int | None = None

    def feed(self, data: bytes) -> list[Json]:
        """The messages that are whole now."""
        self._rest += data
        found: list[Json] = []
        while (body := self._next()) is not None:
            found.append(_object(body))
        return found

    def finish(self) -> None:
        """The output has ended."""
        assert not self._rest, f"stdout ends inside a frame: {self._rest[:200]!r}"

    def _line(self) -> bytes | None:
        end = self._rest.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._rest)
            return None
        self._searched = 0
        return self._take(end + 1)

    def _framed(self) -> bytes | None:
        if self._length is None:
            begun = bytes(self._rest[:64])
            header, blank, _ = begun.partition(b"\r\n\r\n")
            prefix = b"Content-Length: "
            assert header[: len(prefix)] == prefix[: len(header)], f"no frame: {begun!r}"
            if not blank:
                assert len(begun) < 64, f"no frame: {begun!r}"
                return None
            assert header[len(prefix) :].isdigit(), f"no frame: {begun!r}"
            self._length = int(header[len(prefix) :])
            self._take(len(header) + len(blank))
        if len(self._rest) < self._length:
            return None
        length, self._length = self._length, None
        return self._take(length)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._rest[:count])
        del self._rest[:count]
        return taken


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
