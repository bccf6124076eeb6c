"""The promises of a store after a fault, as assertions: ledger, store and model requests must agree. Reads only.

    tally = await hold(ledger, fresh_host, model.requests)

The store is looked at through a sidecar that was started after the fault. Every message names the promise by its number
in the design's list, "nothing lost": 1 acknowledged is there, 2 whole or absent, 3 one end a run, 4 one result a call,
5 one end an approval, 6 valid requests, 8 all views agree, 9 sessions apart. Runs need inputs that differ.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.host import FakeHost
from tests.bench.ledger import AskedRun, Ledger, LedgerSession, steady
from tests.bench.promises_delegated import Delegated, delegated, own
from tests.bench.recorded import Recorded, as_text
from tests.bench.wire import Json

REFUSALS = frozenset(
    {
        "sessionBusy", "overloaded", "storageFailed", "storageBusy", "sessionClosed", "sessionLocked",
        "sessionNotFound", "invalidRequest", "serverCancelled", "ownershipLost", "sessionCorrupt",
    }
)  # fmt: skip
"""Kinds of errors that say that a run was not begun."""

KEPT_RUNS = 200
"""The events of so many runs of a session are kept."""


@dataclass
class Tally:
    """How much was held against the promises."""

    sessions: int = 0
    events: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    """Runs by how they ended; `absent`: never acknowledged, and not there."""
    repaired: int = 0
    """Runs that this sidecar ended as interrupted."""
    requests: int = 0


@dataclass
class _Found:
    """One session, as the fresh sidecar tells of it."""

    state: Json
    events: list[Json]
    history: list[Json]
    runs: dict[str, Json | None]
    """`getState.run` of each run that the host asked for."""
    delegated: dict[str, Delegated]
    """The runs that those have delegated to other agents."""


async def hold(ledger: Ledger, host: FakeHost, requests: Sequence[Recorded] = ()) -> Tally:
    """Hold every session of the ledger against the promises; all of them are open in `host` afterwards.

    Raises:
        AssertionError: a promise was broken; the message says which, and where.
    """
    tally = Tally()
    listed = await _listed(host)
    strangers = listed - set(ledger.sessions)
    assert not strangers, f"promise 2: sessions that nobody asked for: {strangers}"
    found: dict[str, _Found] = {}

    async def one(session_id: str, known: LedgerSession) -> None:
        there = await _find(host, session_id, known, listed)
        if there is not None:
            found[session_id] = await _resumed(host, session_id, known, there, tally)

    await asyncio.gather(*(one(session_id, known) for session_id, known in ledger.sessions.items()))
    for session_id, there in found.items():
        _hold_session(session_id, ledger.sessions[session_id], there, tally)
    _hold_requests(ledger, found, requests)
    tally.requests = len(requests)
    return tally


# ---- looking -----------------------------------------------------------------------------------------------------


async def _listed(host: FakeHost) -> set[str]:
    found: set[str] = set()
    cursor: Json = {}
    while True:
        page = await host.request("listSessions", {"limit": 1000, **cursor})
        for info in page["sessions"]:
            assert info["sessionId"] not in found, f"promise 8: {info['sessionId']!r} is listed twice"
            found.add(info["sessionId"])
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def _find(host: FakeHost, session_id: str, known: LedgerSession, listed: set[str]) -> list[Json] | None:
    """The events before the session is opened; `None` if it is not there, and need not be."""
    acknowledged = known.created is not None or known.events
    answer = await host.ask("getState", {"sessionId": session_id}).message()
    if "error" in answer:
        kind = answer["error"]["data"]["kind"]
        assert kind == "sessionNotFound", f"promise 1: {session_id!r} cannot be read: {answer}"
        assert not acknowledged or known.deleting, f"promise 1: {session_id!r} was acknowledged and is gone"
        assert session_id not in listed, f"promise 2: {session_id!r} is listed, and not there"
        return None
    assert session_id in listed, f"promise 2: {session_id!r} is there, and not listed"
    return await _events(host, session_id)


async def _resumed(host: FakeHost, session_id: str, known: LedgerSession, before: list[Json], tally: Tally) -> _Found:
    """Open the session, as a host does after a crash, and read all of it."""
    opened = await host.request("resumeSession", {"sessionId": session_id})
    events = await _events(host, session_id)
    repaired: list[str] = opened.get("recovered", {}).get("interruptedRuns", [])
    assert events[: len(before)] == before, f"promise 1: opening {session_id!r} changed its events"
    ends = [event["runId"] for event in events[len(before) :] if event["type"] == "run.completed"]
    assert sorted(ends) == sorted(repaired), f"promise 3: {session_id!r} was repaired by {ends}, and told {repaired}"
    tally.repaired += len(repaired)
    state = await host.request("getState", {"sessionId": session_id})
    assert "activeRun" not in state, f"promise 3: {session_id!r} believes that a dead run is active"
    history: list[Json] = []
    cursor: Json = {}
    while True:
        page = await host.request("getHistory", {"sessionId": session_id, "limit": 1000, **cursor})
        history += page["messages"]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    runs = {run_id: await _run(host, session_id, run_id) for run_id in known.runs}
    return _Found(state, events, history, runs, delegated(session_id, events))


async def _events(host: FakeHost, session_id: str) -> list[Json]:
    found: list[Json] = []
    after = 0
    while True:
        page = await host.request("getEvents", {"sessionId": session_id, "afterSeq": after, "limit": 1000})
        found += page["events"]
        if not page["hasMore"]:
            return found
        after = page["lastSeq"]


async def _run(host: FakeHost, session_id: str, run_id: str) -> Json | None:
    params = {"sessionId": session_id, "runId": run_id, "include": ["run"]}
    answer = await host.ask("getState", params).message()
    if "result" in answer:
        return answer["result"]["run"]
    kind = answer["error"]["data"]["kind"]
    assert kind == "runNotFound", f"promise 3: run {run_id!r} cannot be read: {answer}"
    return None


# ---- holding -----------------------------------------------------------------------------------------------------


def _hold_session(session_id: str, known: LedgerSession, there: _Found, tally: Tally) -> None:
    _hold_events(session_id, known, there)
    ends = _ends(session_id, known, own(there.events))
    for run_id, asked in known.runs.items():
        tally.runs[_hold_run(f"{session_id}/{run_id}", asked, there.runs[run_id], ends.get(run_id))] += 1
    _hold_history(session_id, there, ends)
    _hold_requests_of_host(session_id, there)
    tally.sessions += 1
    tally.events += len(there.events)


def _hold_events(session_id: str, known: LedgerSession, there: _Found) -> None:
    """Promises 1 and 8: what was acknowledged is there, unchanged; numbers have no hole and no repeat."""
    seqs = [event["seq"] for event in there.events]
    first = seqs[0] if seqs else 1
    assert first == 1 or len(known.runs) > KEPT_RUNS, f"promise 1: {session_id!r} lost the events before {first}"
    assert seqs == list(range(first, first + len(seqs))), f"promise 8: {session_id!r} has the events {seqs}"
    last = there.state["lastSeq"]
    assert last == (seqs[-1] if seqs else 0), f"promise 8: {session_id!r} says {last}, its last event is {seqs[-1:]}"
    stored = {event["seq"]: steady(event) for event in there.events}
    for seq, event in known.events.items():
        assert seq in stored or seq < first, f"promise 1: {session_id!r} lost event {seq}: {event}"
        assert seq < first or stored[seq] == event, f"promise 1: {session_id!r} has {stored[seq]}, told was {event}"
    if known.created is not None:
        told, now = known.created["session"]["epoch"], there.state["epoch"]
        assert told == now, f"promise 1: the epoch of {session_id!r} was {told}, and is {now}"


def _ends(session_id: str, known: LedgerSession, events: list[Json]) -> dict[str, Json]:
    """Promises 3 and 9: every run in the events was asked for, and has one end, after which nothing of it comes."""
    ends: dict[str, Json] = {}
    begun: set[str] = set()
    for event in events:
        run_id = event.get("runId")
        if run_id is None:
            continue
        assert run_id in known.runs, f"promise 9: {session_id!r} has events of {run_id!r}, which was not asked of it"
        assert run_id not in ends, f"promise 3: {session_id}/{run_id} goes on after its end: {event}"
        begun.add(run_id)
        if event["type"] == "run.completed":
            ends[run_id] = event["data"]
    assert begun == set(ends), f"promise 3: runs of {session_id!r} without an end: {begun - set(ends)}"
    return ends


def _hold_run(name: str, asked: AskedRun, state: Json | None, end: Json | None) -> str:
    """Promises 1, 3 and 8: record, events and answers tell of one end; how it ended."""
    assert (state is None) == (end is None), f"promise 8: {name} has the record {state} and the end {end}"
    if state is None or end is None:
        for told in asked.answers:
            kind = told["error"]["data"]["kind"] if "error" in told else None
            assert kind in REFUSALS, f"promise 1: {name} was answered {told}, and is not there"
        return "absent"
    assert state["status"] == end["status"], f"promise 8: {name} is {state}, its last event says {end}"
    for told in asked.answers:
        if "result" in told and not any(warning["kind"] == "storageFailed" for warning in _warnings(told)):
            status = told["result"].get("status")
            accepted = status in ("running", "queued")
            assert accepted or status == end["status"], f"promise 1: {name} was answered {told}, and stored as {end}"
        elif "error" in told and told["error"]["data"]["kind"] not in REFUSALS:
            assert end.get("error") == told["error"], f"promise 1: {name} failed with {told}, and is stored as {end}"
    return end["status"]


def _warnings(told: Json) -> list[Json]:
    return told["result"].get("warnings", [])


def _hold_history(session_id: str, there: _Found, ends: dict[str, Json]) -> None:
    """Promises 2, 4 and 8: the transcript is what the events tell, once, in order; each call has one result."""
    failed = {run_id for run_id, end in ends.items() if end["status"] == "failed"}
    told = [
        (event["data"]["messageId"], event["data"]["role"], event["data"]["content"])
        for event in own(there.events)
        if event["type"] == "message.completed" and event["runId"] not in failed
    ]
    ids = [message["messageId"] for message in there.history]
    assert len(ids) == len(set(ids)), f"promise 1: {session_id!r} holds a message twice: {ids}"
    known = {message_id for message_id, _, _ in told}
    first = min((event["seq"] for event in there.events), default=1)
    held = [
        (message["messageId"], message["role"], message["content"])
        for message in there.history
        if message["messageId"] in known or (message["role"] != "tool" and first == 1)
    ]
    assert held == told, f"promise 8: the history of {session_id!r} is {held}, its events tell {told}"
    calls, results = _blocks(there, "functionCall"), _blocks(there, "functionResult")
    assert calls == results, f"promise 4: {session_id!r} has the calls {calls} and the results {results}"
    assert all(count == 1 for count in calls.values()), f"promise 4: {session_id!r} has a call twice: {calls}"


def _blocks(there: _Found, kind: str) -> Counter[str]:
    return Counter(
        f"{message.get('runId')}/{block['callId']}"
        for message in there.history
        for block in message["content"]
        if block["type"] == kind
    )


def _hold_requests_of_host(session_id: str, there: _Found) -> None:
    """Promise 5: a request to the host is resolved once, or pending still."""
    opened = [event["data"]["requestId"] for event in there.events if event["type"] == "request.opened"]
    resolved = [event["data"]["requestId"] for event in there.events if event["type"] == "request.resolved"]
    assert len(resolved) == len(set(resolved)), f"promise 5: {session_id!r} resolved a request twice: {resolved}"
    pending = sorted(request["requestId"] for request in there.state["pendingRequests"])
    left = sorted(set(opened) - set(resolved))
    assert pending == left, f"promise 5: {session_id!r} waits for {pending}, by its events for {left}"


def _hold_requests(ledger: Ledger, found: dict[str, _Found], requests: Sequence[Recorded]) -> None:
    """Promises 4, 6 and 9: requests are valid, of a stored run, made once, and hold that session's transcript only."""
    by_input = {
        run.params["input"]: (session_id, run_id)
        for session_id, session in ledger.sessions.items()
        for run_id, run in session.runs.items()
    }
    begun: Counter[tuple[str, str]] = Counter()
    tasks = {run.task for there in found.values() for run in there.delegated.values()}
    for request in requests:
        assert request.is_well_paired(), f"promise 6: an unpaired request: {request.messages}"
        if request.last_user_text in tasks:
            told = [role for role in request.roles if role == "user"]
            assert told == ["user"], f"promise 9: a delegated run was shown a conversation: {request.messages}"
            continue
        session_id, run_id = by_input[request.last_user_text]
        begun[session_id, run_id] += request.messages[-1]["role"] == "user"
        if ledger.sessions[session_id].deleting:
            continue
        assert session_id in found, f"promise 1: the model was called for {session_id!r}, which is not there"
        assert found[session_id].runs[run_id], f"promise 1: the model was called for {run_id!r}, which is not there"
        _hold_request(request, session_id, run_id, found[session_id])
    twice = [run for run, count in begun.items() if count > 1]
    assert not twice, f"promise 4: the model was called again from the start for {twice}"


def _hold_request(request: Recorded, session_id: str, run_id: str, there: _Found) -> None:
    starts = [event["runId"] for event in there.events if event["type"] == "run.started"]
    if run_id not in starts:  # its events are no longer kept
        return
    earlier = set(starts[: starts.index(run_id)])
    told = [
        (message["role"], text)
        for message in there.history
        if message["role"] != "tool" and message.get("runId") in earlier and (text := _text(message["content"]))
    ]
    shown = [
        (message["role"], text)
        for message in request.messages
        if message["role"] in ("user", "assistant") and (text := as_text(message))
    ]
    wanted = shown[: shown.index(("user", request.last_user_text))]
    assert wanted == told, f"promises 6, 9: {session_id}/{run_id} was shown {wanted}; its transcript is {told}"


def _text(content: list[dict[str, Any]]) -> str:
    return "".join(block.get("text", "") for block in content if block["type"] == "text")
