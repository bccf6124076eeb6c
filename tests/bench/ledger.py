"""The host's own file of what it asked for and what was acknowledged, synced before the next step. It judges nothing.

A ledger outlives the sidecars that it is kept of, and the host: opened again, it holds what its file holds. What must
be true of a store after a fault is said in `promises`.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.wire import Json

_KEPT = frozenset({"createSession", "run", "deleteSession"})
"""Requests whose answers acknowledge something."""


@dataclass
class AskedRun:
    """A run that was asked for, under a `runId` of the host's."""

    params: Json
    answers: list[Json] = field(default_factory=list[Json])
    """Results and errors, one for each time that it was asked for and answered."""


@dataclass
class LedgerSession:
    """What the host knows of one session."""

    created: Json | None = None
    """The answer of `createSession`; `None`: never acknowledged."""
    deleting: bool = False
    """Its deletion was asked for."""
    runs: dict[str, AskedRun] = field(default_factory=dict[str, AskedRun])
    events: dict[int, Json] = field(default_factory=dict[int, Json])
    """Durable events by `seq`, without what may differ from one sending to the next."""


class Ledger:
    """Everything acknowledged by the sidecars that were started with it."""

    def __init__(self, path: Path) -> None:
        self.sessions: dict[str, LedgerSession] = {}
        self._open: dict[tuple[int, int | str], tuple[str, Json]] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                self._apply(json.loads(line))
            self._open.clear()  # what was not answered never will be
        self._file = path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def asked(self, pid: int, request_id: int | str, method: str, params: Json) -> None:
        """The host sends a request to the sidecar of that pid. Not synced: that acknowledges nothing."""
        if method in _KEPT and "sessionId" in params:
            self._write({"asked": [pid, request_id], "method": method, "params": params})

    def took(self, pid: int, messages: list[Json]) -> None:
        """The host has read messages of a sidecar: on disk when this returns. Nothing once the ledger is closed."""
        if self._file.closed:
            return
        entries = [entry for message in messages if (entry := self._entry(pid, message)) is not None]
        for entry in entries:
            self._write(entry)
        if entries:
            self._file.flush()
            os.fdatasync(self._file.fileno())

    def _entry(self, pid: int, message: Json) -> Json | None:
        if message.get("method") == "run/event":
            event = message["params"]
            return None if event.get("ephemeral") else {"event": steady(event)}
        if "method" not in message and (pid, message["id"]) in self._open:
            return {
                "answered": [pid, message["id"]],
                **{key: message[key] for key in ("result", "error") if key in message},
            }
        return None

    def _write(self, entry: Json) -> None:
        self._apply(entry)
        self._file.write(json.dumps(entry) + "\n")

    def _apply(self, entry: Json) -> None:
        if "event" in entry:
            event = entry["event"]
            known = self._session(event["sessionId"]).events.setdefault(event["seq"], event)
            assert known == event, f"an event was sent twice, and differently: {known} … {event}"
        elif "asked" in entry:
            pid, request_id = entry["asked"]
            self._open[pid, request_id] = entry["method"], entry["params"]
            self._ask(entry["method"], entry["params"])
        else:
            pid, request_id = entry["answered"]
            method, params = self._open.pop((pid, request_id))
            self._answer(method, params, entry)

    def _ask(self, method: str, params: Json) -> None:
        session = self._session(params["sessionId"])
        if method == "deleteSession":
            session.deleting = True
        elif method == "run" and "runId" in params:
            known = session.runs.setdefault(params["runId"], AskedRun(params))
            assert known.params["input"] == params["input"], "one run id for two runs: the test's own fault"

    def _answer(self, method: str, params: Json, answer: Json) -> None:
        session = self._session(params["sessionId"])
        if method == "run" and "runId" in params:
            told = {key: answer[key] for key in ("result", "error") if key in answer}
            session.runs[params["runId"]].answers.append(told)
        elif method == "createSession" and "result" in answer:
            session.created = answer["result"]

    def _session(self, session_id: str) -> LedgerSession:
        return self.sessions.setdefault(session_id, LedgerSession())


def steady(event: Json) -> dict[str, Any]:
    """An event without what may differ between a live stream, a replay and `getEvents`."""
    return {key: value for key, value in event.items() if key not in ("prevSeq", "_meta")}
