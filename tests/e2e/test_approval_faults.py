"""BR-12, F7, F15 and BR-03(d) with approvals: what goes wrong around a decision costs neither it nor the session."""

import asyncio
import random
import sys
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.gated import ALLOW, LEFT_OPEN, REJECT, TOOLS, Gated, Manner, Question, ended, question, says
from tests.bench.host import LATER, HostSession, RpcError
from tests.bench.processes import gone
from tests.bench.wire import Json
from tests.conftest import scaled
from tests.e2e.test_faults_host import GONE_S, PARENT, WAYS, sidecar_of, vanish

SLACK = 10
"""How many times the stated bound a loaded machine may take."""
REJECTED = "Error: Tool call invocation was rejected by user."
RETRIES = 2
NEAR_S = 0.005
"""How close to its deadline an approval is given."""


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


def agent(manner: Manner) -> Json:
    return LEFT_OPEN if manner == "parked" else {}


async def stored(session: HostSession, kind: str) -> list[Json]:
    """All events of a type that the store has."""
    page = await session.host.request("getEvents", {"sessionId": session.id, "afterSeq": 0, "limit": 1000})
    return [event["data"] for event in page["events"] if event["type"] == kind]


async def outcomes(session: HostSession) -> list[str]:
    """How its approvals were resolved, by the store."""
    approvals = [data["requestId"] for data in await stored(session, "request.opened") if data["kind"] == "approval"]
    resolved = await stored(session, "request.resolved")
    return [data["outcome"] for data in resolved if data["requestId"] in approvals]


async def hold(gated: Gated, model: FakeModel, session: HostSession, *, approved: bool) -> None:
    """The next run works and knows what came of the call; the decision is stored once, also after a kill."""
    model.otherwise(lambda request: [T("hello to you")])
    assert (await session.run("hello", whenBusy="queue"))["text"] == "hello to you"
    assert model.last_request.is_well_paired()
    assert list(model.last_request.tool_results) == ["c0"]
    result = model.last_request.tool_results["c0"]
    outcome = "approved" if approved else "denied"
    assert await outcomes(session) == [outcome]
    ran = gated.ran[f"delete{{'a': '{session.id}'}}"]
    assert ran <= 1
    if not approved:
        assert (ran, result) == (0, REJECTED)
    elif ran:
        assert result == "delete done" or "unknown" in result
    else:
        assert result != "delete done"


# ---- BR-12 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", ["live", "parked"])
async def test_br_12_a_failing_model_after_the_decision_poisons_nothing(
    gated: Gated, model: FakeModel, manner: Manner
) -> None:
    host = await gated.start()
    sessions: dict[HostSession, bool] = {}
    for approved in (True, False):
        session = await host.create_session(sessionId=f"{approved}", tools=TOOLS, agent=agent(manner))
        asked = await question(model, session, ("delete", {"a": session.id}), manner=manner)
        model.fails(500, times=1 + RETRIES, retry_after=0)

        run_id = await decided(asked, ALLOW if approved else REJECT)

        (end,) = await host.until(lambda session=session, run_id=run_id: ended(session, run_id))
        assert (end["data"]["status"], end["data"]["error"]["data"]["kind"]) == ("failed", "modelUnavailable")
        if manner == "live":
            with pytest.raises(RpcError):
                await asked.run.result()
        await hold(gated, model, session, approved=approved)
        sessions[session] = approved
    assert sum(gated.ran.values()) == 1
    host.kill()
    await host.wait()

    again = await gated.start()
    for session, approved in sessions.items():
        await hold(gated, model, await again.resume_session(session.id, tools=TOOLS), approved=approved)
    assert sum(gated.ran.values()) == 1


@pytest.mark.parametrize("manner", ["live", "parked"])
async def test_br_12_a_cancel_after_the_decision_poisons_nothing(
    gated: Gated, model: FakeModel, manner: Manner
) -> None:
    host = await gated.start()
    for approved in (True, False):
        session = await host.create_session(sessionId=f"{approved}", tools=TOOLS, agent=agent(manner))
        asked = await question(model, session, ("delete", {"a": session.id}), manner=manner)
        model.says(T("well"), Stall())

        run_id = await decided(asked, ALLOW if approved else REJECT)
        await host.until(lambda session=session: session.events("message.delta"))
        await session.cancel()

        (end,) = await host.until(lambda session=session, run_id=run_id: ended(session, run_id))
        assert end["data"]["status"] == "cancelled"
        await hold(gated, model, session, approved=approved)
    assert sum(gated.ran.values()) == 1


async def test_br_12_a_cancel_at_the_instant_of_the_decision_leaves_one_result(gated: Gated, model: FakeModel) -> None:
    """Both in one write; whichever is first, the call runs at most once and has one result."""
    session = await gated.session()
    model.otherwise(lambda request: [T("fine")])
    for turn in range(scaled(12)):
        gated.ran.clear()
        asked = await question(model, session, ("delete", {"a": turn}))
        if turn % 3 == 0:
            asked.reply(ALLOW)
            cancelling = session.host.ask("cancelRun", {"sessionId": "s"})
        else:
            answer = {"sessionId": "s", "requestId": asked.id, "result": ALLOW}
            first = turn % 3 == 1
            cancelling = session.host.ask("cancelRun", {"sessionId": "s"}) if first else None
            resolved = session.host.ask("resolveRequest", answer)
            cancelling = cancelling or session.host.ask("cancelRun", {"sessionId": "s"})
            status = (await resolved.result())["status"]
            assert (status == "resolved") == (asked.outcomes == ["approved"])
        await cancelling.result()
        result = await asked.run.result()

        assert (await session.run("next"))["text"] == "fine"
        assert model.last_request.is_well_paired()
        assert len(model.last_request.tool_results) == turn + 1
        assert sum(gated.ran.values()) <= (asked.outcomes == ["approved"])
        assert len(asked.outcomes) == 1
        assert result["status"] in ("completed", "cancelled")


@pytest.mark.parametrize("approved", [True, False], ids=["approve", "deny"])
@pytest.mark.parametrize("manner", ["live", "parked"])
async def test_br_12_a_decision_that_was_accepted_survives_the_kill_that_follows(
    gated: Gated, model: FakeModel, manner: Manner, approved: bool
) -> None:
    """Accepted: `resolveRequest` was answered, for a live question too."""
    host = await gated.start()
    host.serves["host/callTool"] = lambda params: host.kill()
    session = await host.create_session(sessionId="s", tools=TOOLS, agent=agent(manner))
    asked = await question(model, session, ("delete", {"a": "s"}), manner=manner)
    model.otherwise(lambda request: [Stall()])

    answered = await asked.resolve(ALLOW if approved else REJECT)
    host.kill()
    await host.wait()
    assert answered["status"] == "resolved"

    host = await gated.start()
    session = await host.resume_session("s", tools=TOOLS)
    assert session.opened["pendingRequests"] == []
    if not approved:  # what was allowed may still be rejected; what was rejected stays so
        again = {"sessionId": "s", "requestId": asked.id, "result": ALLOW}
        assert (await host.request("resolveRequest", again))["status"] in ("alreadyResolved", "unknown")
    await hold(gated, model, session, approved=approved)


async def test_an_answer_that_is_repeated_after_a_kill_lets_the_decided_call_go_on_once(
    gated: Gated, model: FakeModel
) -> None:
    """The decision was stored, its acknowledgement lost with the process: the host asks again, in either way."""
    model.otherwise(lambda request: [T("gone")])
    for retry in ("resolveRequest", "run"):
        armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": "approval.decide.after:1"}
        host = await gated.start(env=armed)
        session = await host.create_session(sessionId=retry, tools=TOOLS, agent=LEFT_OPEN)
        asked = await question(model, session, ("delete", {"a": retry}), manner="parked")
        block = {"type": "approvalResponse", "requestId": asked.id, "approved": True}
        given = {"runId": "mine", "input": [block]} if retry == "run" else {"requestId": asked.id, "result": ALLOW}
        host.ask(retry, {"sessionId": retry, **given})
        await host.wait()

        host = await gated.start()
        session = await host.resume_session(retry, tools=TOOLS)
        answer = await host.ask(retry, {"sessionId": retry, **given}).message()
        assert answer.get("result", {}).get("status") != "resolved"
        await hold(gated, model, session, approved=True)
        assert gated.ran[f"delete{{'a': '{retry}'}}"] == 1
    assert sum(gated.ran.values()) == 2


async def decided(asked: Question, result: Json) -> str:
    """Give the answer; the run that acts on it."""
    return (await asked.resolve(result)).get("runId", asked.run.id)


async def test_who_cancels_the_run_that_goes_on_takes_the_approval_back(gated: Gated, model: FakeModel) -> None:
    """Its call gets one result, and is not made by a later run."""
    slow = {"type": "host", "sourceId": "slow"}
    session = await gated.session(agent=LEFT_OPEN, contextProviders=[slow])
    host = session.host
    host.serves |= {"host/beforeRun": lambda params: {}, "host/afterRun": lambda params: {}}
    asked = await question(model, session, ("delete", {"a": "s"}), manner="parked")
    host.serves["host/beforeRun"] = lambda params: LATER
    run_id = await decided(asked, ALLOW)
    await host.until(lambda: host.asked("host/beforeRun")[1:])

    await session.cancel()

    await host.until(lambda: ended(session, run_id))
    state = await session.state()
    assert (state["session"]["status"], state["pendingRequests"]) == ("idle", [])
    host.serves["host/beforeRun"] = lambda params: {}
    await hold(gated, model, session, approved=True)
    session = await gated.again(session)
    await hold(gated, model, session, approved=True)
    assert not gated.ran["delete{'a': 's'}"]
    assert "before this call was made" in model.last_request.tool_results["c0"]


async def test_closing_a_session_keeps_what_was_left_open_and_ends_what_is_asked(
    gated: Gated, model: FakeModel
) -> None:
    host = await gated.start()
    for manner in ("live", "parked"):
        session = await host.create_session(sessionId=manner, tools=TOOLS, agent=agent(manner))
        asked = await question(model, session, ("delete", {"a": manner}), manner=manner)
        await host.request("closeSession", {"sessionId": manner})
        await asked.run.result()
        opened = (await host.resume_session(manner, tools=TOOLS)).opened
        if manner == "live":
            assert (opened["pendingRequests"], asked.outcomes) == ([], ["cancelled"])
            assert (await asked.resolve(ALLOW))["status"] in ("unknown", "alreadyResolved")
        else:
            assert [request["requestId"] for request in opened["pendingRequests"]] == [asked.id]
            says(model, "gone")
            await asked.settle(ALLOW)
    assert gated.ran == {"delete{'a': 'parked'}": 1}


async def test_the_session_is_free_once_the_end_of_the_run_that_went_on_was_told(
    gated: Gated, model: FakeModel
) -> None:
    """Nothing else tells of that end."""
    session = await gated.session(agent=LEFT_OPEN)
    model.otherwise(lambda request: [T("fine")])
    for turn in range(scaled(20)):
        asked = await question(model, session, ("delete", {"a": turn}), manner="parked")
        await asked.settle(ALLOW)
        assert (await session.run("next"))["text"] == "fine"


# ---- F7 and BR-03(d) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*WAYS, "a script kills itself"])
async def test_f7_a_question_outlives_a_host_that_vanishes_and_is_answered_once(
    start_host: Any, model: FakeModel, store: str, gated: Gated, way: str
) -> None:
    """Never approved by itself. A script's end of input parks its question as any other."""
    framing, code = WAYS.get(way, ("ndjson", None))
    is_parent_killed = way in ("the parent is killed", "a script kills itself")
    under = (sys.executable, "-c", PARENT) if is_parent_killed else ()
    host = await gated.start(framing=framing, under=under)
    session = await host.create_session(sessionId="s", tools=TOOLS)
    pid = await sidecar_of(host) if under else host.process.pid
    asked = await question(model, session)

    vanish(host, "the parent is killed" if is_parent_killed else way)
    async with asyncio.timeout(GONE_S * SLACK):
        await gone(pid)
        exit_code = await host.process.wait()
    assert code is None or exit_code == code

    host = await gated.start()
    session = await host.resume_session("s", tools=TOOLS)
    assert "recovered" not in session.opened, "the end of the run was left to crash repair"
    assert [request["requestId"] for request in session.opened["pendingRequests"]] == [asked.id]
    assert gated.ran == {}
    says(model, "gone")
    answer = {"sessionId": "s", "requestId": asked.id, "result": ALLOW}
    first, *others = [host.ask("resolveRequest", answer) for _ in range(3)]
    run_id = (await first.result())["runId"]
    assert [(await other.result())["status"] for other in others] == ["alreadyResolved"] * 2
    await host.until(lambda: ended(session, run_id))
    assert gated.ran == {"delete{'a': 1}": 1}
    assert await outcomes(session) == ["approved"]


# ---- F15 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["answer", "resolveRequest"])
async def test_f15_an_approval_around_its_deadline_has_one_outcome(gated: Gated, model: FakeModel, by: str) -> None:
    session = await gated.session(agent={"approvals": {"timeoutMs": 60}})
    model.otherwise(lambda request: [T("fine")])
    dice = random.Random(15)
    wait_s = 0.06
    told_of: list[str] = []
    for turn in range(max(20, scaled(25))):
        gated.ran.clear()
        asked = await question(model, session, ("delete", {"a": turn}))
        await asyncio.sleep(max(0.0, wait_s + dice.uniform(-NEAR_S, NEAR_S)))
        resolved: Json = {}
        if by == "answer":
            asked.reply(ALLOW)
        else:
            resolved = await asked.resolve(ALLOW)
        result = await asked.run.result()

        assert result["text"] == "fine"
        (outcome,) = asked.outcomes
        assert sum(gated.ran.values()) == (outcome == "approved")
        (told,) = [e["data"]["by"] for e in session.events("request.resolved") if e["data"]["requestId"] == asked.id]
        assert told == ("client" if outcome == "approved" else "timeout")
        if resolved:
            assert (resolved["status"] == "resolved") == (outcome == "approved")
        assert not await asked.is_pending()
        told_of.append(outcome)
        wait_s += NEAR_S / 2 if outcome == "approved" else -NEAR_S / 2  # whatever the machine adds: near the deadline
    assert set(told_of) == {"approved", "denied"}, "it was never near"
