"""The promises of delegated runs, as assertions on a session's events: nested, apart, ended before their call. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tests.bench.wire import Json


class Delegated(NamedTuple):
    """A run that is a tool call of another one."""

    run_id: str
    parent: str
    call: str
    task: str


def own(events: Sequence[Json]) -> list[Json]:
    """The events of runs that the host asked for."""
    return [event for event in events if "parentRunId" not in event]


def delegated(session_id: str, events: Sequence[Json]) -> dict[str, Delegated]:
    """The delegated runs of a session, held against promises 3, 4 and 9.

    Each begins within a call that was begun and has not ended, with its task as only input; it ends once, before that
    call, and so do the runs that it has delegated itself; each of its own calls that was begun has one result.
    """
    found: dict[str, Delegated] = {}
    calls: set[tuple[str, str]] = set()
    open_runs: list[str] = []
    for event in events:
        run_id: str = event.get("runId", "")
        if "parentRunId" in event:
            name = f"{session_id}/{run_id}"
            parent, call = event["parentRunId"], event["parentCallId"]
            if run_id not in found:
                assert event["type"] == "run.started", f"promise 3: {name} begins with {event}"
                assert (parent, call) in calls, f"promise 9: {name} begins outside of its call: {event}"
                found[run_id] = Delegated(run_id, parent, call, "")
                open_runs.append(run_id)
            assert found[run_id][1:3] == (parent, call), f"promise 9: {name} changes its caller: {event}"
            if event["type"] == "message.completed" and event["data"]["role"] == "user":
                assert not found[run_id].task, f"promise 9: {name} has a second input: {event}"
                found[run_id] = found[run_id]._replace(task=_text(event))
        _close(session_id, event, found, calls, open_runs)
    assert not open_runs, f"promise 3: delegated runs of {session_id!r} without an end: {open_runs}"
    return found


def _close(
    session_id: str, event: Json, found: dict[str, Delegated], calls: set[tuple[str, str]], open_runs: list[str]
) -> None:
    run_id: str = event.get("runId", "")
    data: Json = event["data"]
    if event["type"] == "tool.started":
        calls.add((run_id, data["callId"]))
    elif event["type"] == "tool.completed":
        calls.discard((run_id, data["callId"]))
        inside = [run for run in open_runs if found[run][1:3] == (run_id, data["callId"])]
        assert not inside, f"promise 3: {session_id}: {event} comes before the end of {inside}"
    elif event["type"] == "run.completed":
        inside = [run for run in open_runs if found[run].parent == run_id]
        assert not inside, f"promise 3: {session_id}: {run_id} ends before {inside}"
        left = {call for run, call in calls if run == run_id}
        assert not left, f"promise 4: {session_id}: {run_id} ends with the open calls {left}"
        if run_id in found:
            open_runs.remove(run_id)


def _text(event: Json) -> str:
    return "".join(block.get("text", "") for block in event["data"]["content"])
