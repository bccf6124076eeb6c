"""kill -9 at every point of an answer with gated calls: each runs at most once, each decision is stored once."""

import contextlib
import signal
from collections import Counter
from typing import Any

import pytest

from sidecar.crash_points import POINTS
from tests.bench.fake_model import F, FakeModel, Recorded, Reply, T
from tests.bench.gated import ALLOW, APPROVALS, LEFT_OPEN, REJECT, TOOLS, Gated, Manner, ended, question, says
from tests.bench.host import LATER, FakeHost, HostGone, HostSession
from tests.bench.wanted_calls import wanted
from tests.bench.wire import Json
from tests.conftest import SCALE

CALLS = (("look", {"a": 0}), ("delete", {"a": 1}), ("send", {"a": 2}))
"""One that is free, one that will be allowed, one that will be rejected."""

LIVE = [
    ("approval.open.after", 1),
    ("approval.decide.before", 1),
    ("approval.decide.after", 1),
    ("approval.decide.after", 2),
    ("tool.intent.before", 1),
    ("tool.intent.after", 1),
    ("tool.effect.after", 1),
    ("tool.effect.after", 2),
    ("run.end.before", 1),
    ("run.end.after", 1),
    ("event.sent.before", 6),
    ("answer.before", 2),
]
PARKED = [
    ("approval.open.after", 1),
    ("run.end.before", 1),
    ("run.end.after", 1),
    ("approval.decide.before", 1),
    ("approval.decide.after", 1),
    ("approval.decide.after", 2),
    ("run.begin.after", 2),
    ("tool.intent.before", 1),
    ("tool.intent.after", 1),
    ("tool.effect.after", 2),
    ("run.end.before", 2),
    ("answer.before", 4),
]
"""The run that goes on with a parked answer is a second one."""
ELSEWHERE = ("store.migrate.", "session.", "recovery.")
"""Points that are passed without any calls: `test_faults_crash.py`."""
ALL = [(point, n) for point in POINTS if not point.startswith(ELSEWHERE) for n in range(1, 12)]
"""Every pass of every point, for the long tiers; what is not passed so often ends in peace."""
CELLS: list[tuple[Manner, str, int]] = [
    *(("live", point, n) for point, n in (ALL if SCALE >= 3 else LIVE)),
    *(("parked", point, n) for point, n in (ALL if SCALE >= 3 else PARKED)),
]


def plays(request: Recorded) -> Reply | list[Any]:
    """The model wants the calls once, and then says what it has been told."""
    first = request.last_user_text == "go" and "tool" not in request.roles
    return wanted(*CALLS) if first else [T("fine"), F()]


def decide(request: Json) -> Json:
    return ALLOW if request["toolCall"]["name"] == "delete" else REJECT


async def through(session: HostSession, manner: Manner) -> None:
    """One run with the calls, up to its end, and the end of the run that goes on with it."""
    await session.run("go")
    if manner == "parked":
        await answer_all(session)


async def answer_all(session: HostSession) -> None:
    """Answer what is open; wait for the run that follows from it."""
    host = session.host
    for request in (await session.state())["pendingRequests"]:
        answer = {"sessionId": session.id, "requestId": request["requestId"], "result": decide(request["payload"])}
        resolved = await host.request("resolveRequest", answer)
        assert resolved["status"] == "resolved"
        if "runId" in resolved:
            await host.until(lambda resolved=resolved: ended(session, resolved["runId"]))


@pytest.mark.parametrize(("manner", "point", "n"), CELLS)
async def test_a_kill_around_gated_calls_runs_none_twice_and_forgets_no_decision(
    start_host: Any, model: FakeModel, store: str, manner: Manner, point: str, n: int
) -> None:
    model.otherwise(plays)
    gated = Gated(start_host, model, store)
    asks = {"sessionId": "s", "tools": TOOLS, "agent": LEFT_OPEN if manner == "parked" else {}}
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": f"{point}:{n}"}
    doomed = await gated.start(env=armed)
    doomed.serves["host/requestApproval"] = decide
    with contextlib.suppress(HostGone):
        session = await doomed.create_session(**asks)
        await through(session, manner)
    doomed.hang_up()
    was_passed = await doomed.wait() == -signal.SIGKILL
    is_passed_for_sure = (point, n) in (LIVE if manner == "live" else PARKED)
    assert was_passed or not is_passed_for_sure, f"{point} was not passed {n} times"
    said = [event["data"] for event in doomed.events("s", "request.resolved")]

    host: FakeHost = await gated.start(APPROVALS)
    session = await host.create_session(**asks)  # as a host does that has had no answer
    await answer_all(session)
    assert (await session.run("and now?", whenBusy="queue"))["text"] == "fine"
    await session.host.request("closeSession", {"sessionId": "s"})
    session = await host.resume_session("s", tools=TOOLS)
    assert (await session.run("and then?", whenBusy="queue"))["text"] == "fine"

    state = await session.state()
    assert (state["session"]["status"], state["pendingRequests"]) == ("idle", [])
    assert all(count == 1 for count in gated.ran.values())
    assert set(gated.ran) <= {"look{'a': 0}", "delete{'a': 1}"}
    page = await host.request("getEvents", {"sessionId": "s", "afterSeq": 0, "limit": 1000})
    resolved = [event["data"] for event in page["events"] if event["type"] == "request.resolved"]
    opened = [event["data"]["requestId"] for event in page["events"] if event["type"] == "request.opened"]
    assert Counter(data["requestId"] for data in resolved) == Counter(opened)
    assert all(data in resolved for data in said), "a decision that was told has changed"
    results = [event["data"] for event in page["events"] if event["type"] == "tool.completed"]
    assert len({data["callId"] for data in results}) == len(results), "a call has two ends"
    assert model.last_request.is_well_paired()
    asked_for = [call["id"] for message in model.last_request.messages for call in message.get("tool_calls", ())]
    assert list(model.last_request.tool_results) == asked_for
    if asked_for:
        assert "rejected by user" in model.last_request.tool_results["c2"] or "not run" in str(results)


# ---- BR-19 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["cancel", "kill"])
@pytest.mark.parametrize("manner", ["live", "parked"])
async def test_a_cut_among_approved_calls_keeps_what_was_done_and_closes_the_rest_once(
    start_host: Any, model: FakeModel, store: str, manner: Manner, way: str
) -> None:
    """BR-19."""
    gated = Gated(start_host, model, store)
    host = await gated.start()
    host.serves["host/callTool"] = lambda params: LATER if params["name"] == "delete" else gated.call(params)
    session = await host.create_session(sessionId="s", tools=TOOLS, agent=LEFT_OPEN if manner == "parked" else {})
    asked = await question(model, session, *CALLS[:2], manner=manner)
    run_id = (await asked.resolve(ALLOW)).get("runId", asked.run.id)
    await host.until(lambda: session.events("tool.completed"))
    await host.until(lambda: len(host.asked("host/callTool")) == 2)
    if way == "cancel":
        await session.cancel()
        (end,) = await host.until(lambda: ended(session, run_id))
        assert end["data"]["status"] == "cancelled"
        says(model, "hello")
        await session.run("hi")
        assert model.last_request.tool_results["c0"] == "look done"
    host.kill()
    await host.wait()

    host = await gated.start()
    session = await host.resume_session("s", tools=TOOLS)
    says(model, "hello again")
    await session.run("hi again")

    results = model.last_request.tool_results
    assert results["c0"] == "look done"
    assert ("Cancelled" if way == "cancel" else "unknown") in results["c1"]
    assert [message["role"] for message in model.last_request.messages].count("tool") == 2
    assert model.last_request.is_well_paired()
    assert gated.ran == {"look{'a': 0}": 1}
    state = await session.state()
    assert (state["session"]["status"], state["pendingRequests"]) == ("idle", [])
