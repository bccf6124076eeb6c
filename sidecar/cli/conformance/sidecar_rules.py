"""The rules for the sidecar: answers, and the order and the numbers of events. What a client owes is not here."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from protocol.base import JsonObject
from protocol.methods import (
    CREATE_SESSION,
    DELETE_SESSION,
    FORK_SESSION,
    IMPORT_SESSION,
    INITIALIZE,
    RESUME_SESSION,
    RUN,
    RUN_EVENT,
    SHUTDOWN,
)

from .conversations import Line
from .findings import Finding
from .messages import is_id
from .placeholders import ANY
from .shapes import members, number, text

_OPENS: Final = frozenset({CREATE_SESSION.name, RESUME_SESSION.name, FORK_SESSION.name, IMPORT_SESSION.name})
_COMMAND: Final = "workspace/executeCommand"
_UNDER_WAY: Final = ("running", "queued")
_UNREADABLE: Final = (-32700, -32600)

Run = tuple[str, str]
"""A session's id and a run's."""


@dataclass
class _Chain:
    """Where the events of a session are."""

    seq: int | None
    """The number of the last durable event; None where it is not known yet."""
    gap: bool = False
    """Whether the next number may be any: a replay begins late, or the last event could not be stored yet."""


@dataclass
class _Process:
    """What one process was told, and has said."""

    open: dict[Any, tuple[int, str, JsonObject]] = field(default_factory=dict[Any, tuple[int, str, JsonObject]])
    """Unanswered requests of the client's: line, method, params."""
    reused: list[Any] = field(default_factory=list[Any])
    """Ids of further requests that came under the id of an unanswered one; each has to be refused."""
    asked: set[Any] = field(default_factory=set[Any])
    """The ids of the sidecar's own requests."""
    chains: dict[str, _Chain] = field(default_factory=dict[str, _Chain])
    started: dict[Run, int] = field(default_factory=dict[Run, int])
    """Runs, and where they started."""
    ended: dict[Run, int] = field(default_factory=dict[Run, int])
    """Runs, and the number of their last event."""
    unreadable: bool = False
    """Whether it was sent what is no message, and may refuse it under any id."""
    opted_out: bool = False
    shut_down: bool = False
    lost: bool = False
    """Whether messages of it are not known. Every rule here rests on what was said before: none holds any longer."""
    strangers: bool = False
    """Whether it may speak of sessions that nobody opened: an editor's command, or a one-off run that was accepted."""


class SidecarRules:
    """Reads a log line by line.

    Attributes:
        findings: What the sidecar did wrong so far.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.begin()

    def begin(self) -> None:
        """A new process."""
        self._now = _Process()

    def lose(self) -> None:
        """From here on, messages of this process are not known."""
        self._now.lost = True

    # ---- what the client says -------------------------------------------------------------------------------------

    def sent(self, line: Line) -> None:
        """A message of the client's."""
        message: JsonObject = cast("JsonObject", line.value) if isinstance(line.value, dict) else {"method": None}
        if "method" not in message:
            return
        if not isinstance(message["method"], str) or not is_id(message.get("id", "")):
            self._now.unreadable = True
            return
        method, params = message["method"], message.get("params")
        self._now.shut_down |= method == SHUTDOWN.name
        if method == INITIALIZE.name:
            self._now.opted_out |= bool(_opted_out(params))
        given = members(params)
        accepted = method == RUN.name and "sessionId" not in given and given.get("wait") == "accepted"
        self._now.strangers |= accepted or method == _COMMAND
        if message.get("id") in self._now.open:
            self._now.reused.append(message["id"])
        elif "id" in message:
            self._now.open[message["id"]] = line.number, method, given

    # ---- what the sidecar says ------------------------------------------------------------------------------------

    def received(self, line: Line) -> None:
        """A message of the sidecar's."""
        message: JsonObject = line.value
        if self._now.lost:
            return
        if "method" not in message:
            self._check_answer(line, message)
        elif "id" in message:
            if message["id"] in self._now.asked:
                self._blame(line, f"the id {message['id']!r} was used before")
            self._now.asked.add(message["id"])
        elif message["method"] == RUN_EVENT:
            self._check_event(line, members(message.get("params")))

    def exited(self, line: Line) -> None:
        """It ended by itself, with this code."""
        now = self._now
        if line.value == 0 and not now.lost:
            for asked_in, method, _ in now.open.values():
                self._blame(line, f"{method!r} of line {asked_in} is never answered", asked_in)
            for (session, run), began in now.started.items():
                if now.shut_down and (session, run) not in now.ended and not now.opted_out:
                    self._blame(line, f"the run {run!r} of the session {session!r} has no 'run.completed'", began)
        self.begin()

    def _check_answer(self, line: Line, message: JsonObject) -> None:
        error = members(message.get("error"))
        refusal = error.get("code") in _UNREADABLE
        if refusal and message["id"] in self._now.reused:
            self._now.reused.remove(message["id"])
            return
        asked = self._now.open.pop(message["id"], None) if message["id"] is not None else None
        if asked is None:
            if not refusal or (message["id"] is not None and not self._now.unreadable):
                self._blame(line, f"it answers what was not asked, or was answered before: id {message['id']!r}")
            return
        asked_in, method, params = asked
        result, failure = members(message.get("result")), members(error.get("data"))
        if method in _OPENS and message.get("result") == ANY:
            self.lose()  # it does not say which session is open now
        elif method in _OPENS and result:
            self._open(result, params, has_replay=method == RESUME_SESSION.name)
        elif method == DELETE_SESSION.name and "result" in message:
            self._forget(text(params.get("sessionId")))
        elif method == RUN.name:
            run = text(failure.get("sessionId")), text(failure.get("runId"))
            if result or self._now.started.get(run, 0) > asked_in:  # else it was refused, and may name another's run
                self._check_run_answer(line, result or failure, params)

    def _open(self, result: JsonObject, params: JsonObject, *, has_replay: bool) -> None:
        """From now on the session's events may come; a replay first, if there is one."""
        session = members(result.get("session"))
        name = text(session.get("sessionId")) or text(params.get("newSessionId") or params.get("sessionId"))
        if not name:
            self.lose()
            return
        seq = number(result.get("lastSeq", session.get("lastSeq")))
        replay = members(params.get("replayFrom")) if has_replay else {}
        if replay.get("type") in ("start", "seq"):
            seq = number(replay.get("seq", 0))
            self._forget(name)
        self._now.chains[name] = _Chain(seq, gap=bool(result.get("truncated")))

    def _forget(self, session: str) -> None:
        """What comes of this session begins anew."""
        self._now.chains.pop(session, None)
        for runs in (self._now.started, self._now.ended):
            for run in [run for run in runs if run[0] == session]:
                del runs[run]

    def _check_run_answer(self, line: Line, answer: JsonObject, params: JsonObject) -> None:
        run = text(answer.get("sessionId", params.get("sessionId"))), text(answer.get("runId"))
        if answer.get("status") in _UNDER_WAY or run not in self._now.started or self._now.opted_out:
            return
        if run not in self._now.ended:
            self._blame(line, f"the run {run[1]!r} is answered before its 'run.completed'")
        elif answer.get("lastSeq", self._now.ended[run]) != self._now.ended[run]:
            seq = self._now.ended[run]
            self._blame(line, f"'lastSeq' is {answer['lastSeq']}, but the 'run.completed' of {run[1]!r} has {seq}")

    def _check_event(self, line: Line, event: JsonObject) -> None:
        session, kind = event["sessionId"], event["type"]
        chain = self._chain(line, session)
        run = session, event.get("runId", "")
        if run in self._now.ended:
            self._blame(line, f"{kind!r} comes after the 'run.completed' of its run {run[1]!r}")
        if kind in ("run.started", "run.queued"):
            self._now.started.setdefault(run, line.number)
        if not event.get("ephemeral"):
            self._check_number(line, event, chain)
        if kind == "run.completed":
            self._now.ended[run] = event["seq"]
            chain.gap |= bool(event.get("ephemeral"))  # what could not be stored gets its numbers later

    def _chain(self, line: Line, session: str) -> _Chain:
        if session not in self._now.chains:
            if not self._now.strangers and not any(
                method == RUN.name and "sessionId" not in params for _, method, params in self._now.open.values()
            ):
                self._blame(line, f"an event of the session {session!r} comes before the answer that opens it")
            self._now.chains[session] = _Chain(None)
        return self._now.chains[session]

    def _check_number(self, line: Line, event: JsonObject, chain: _Chain) -> None:
        seq, before = event["seq"], event.get("prevSeq")
        if chain.seq is not None and before != chain.seq:
            self._blame(line, f"'prevSeq' is {before}, but the event before it has {chain.seq}")
        elif before is not None and not (seq == before + 1 or (seq > before and (self._now.opted_out or chain.gap))):
            self._blame(line, f"the event has the number {seq} after {before}")
        chain.seq, chain.gap = seq, False

    def _blame(self, line: Line, what: str, where: int | None = None) -> None:
        self.findings.append(Finding("sidecar", what, where or line.number))


def _opted_out(params: Any) -> Sequence[str]:
    """The types of events that a client does not want."""
    for key in ("initializationOptions", "sidecar", "optOutEvents"):
        params = cast("JsonObject", params).get(key) if isinstance(params, dict) else None
    return cast("list[str]", params) if isinstance(params, list) else ()
