"""Several parked answers in one session, and the run that a client was promised: each call runs once, for its own."""

from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.gated import SILENT, TOOLS, Gated, select
from tests.bench.host import HostGone, RpcError
from tests.bench.wanted_calls import told, wants


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


async def park(session: Any, model: FakeModel, *calls: tuple[str, dict[str, Any]]) -> str:
    """A run that ends with one question; its id."""
    wants(model, *calls)
    (pending,) = (await session.run("go"))["pendingRequests"]
    return pending["requestId"]


async def test_two_parked_answers_may_use_the_same_call_id(gated: Gated, model: FakeModel) -> None:
    session = await gated.session(SILENT)
    first = await park(session, model, ("delete", {"a": 1}))
    second = await park(session, model, ("delete", {"a": 2}))

    for request_id in (second, first):
        model.says(T("done"), F())
        answer = {"requestId": request_id, "result": select("allowOnce")}
        run_id = (await session.host.request("resolveRequest", answer))["runId"]
        await session.host.until(
            lambda run_id=run_id: [e for e in session.events("run.completed") if e["runId"] == run_id]
        )

    assert gated.ran == {"delete{'a': 1}": 1, "delete{'a': 2}": 1}
    ids = [call_id for call_id, _ in told(model)]
    assert len(set(ids)) == 2
    assert ids[0] == "c0"


async def test_answers_about_two_runs_in_one_input_are_refused_and_decide_nothing(
    gated: Gated, model: FakeModel
) -> None:
    session = await gated.session(SILENT)
    ids = [await park(session, model, ("delete", {"a": number})) for number in (1, 2)]
    responses = [{"type": "approvalResponse", "requestId": one, "approved": True} for one in ids]

    with pytest.raises(RpcError) as refused:
        await session.run([{"role": "user", "content": responses}])

    assert refused.value.kind == "invalidParams"
    state = await session.host.request("getState", {"sessionId": session.id})
    assert [one["requestId"] for one in state["pendingRequests"]] == ids


async def test_a_run_that_was_promised_is_begun_when_the_session_is_resumed(gated: Gated, model: FakeModel) -> None:
    host = await gated.start(SILENT, env={"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": "run.begin.before:2"})
    session = await host.create_session(sessionId="s", tools=TOOLS)
    request_id = await park(session, model, ("delete", {"a": 1}))
    model.says(T("done"), F())
    answer = {"sessionId": "s", "requestId": request_id, "result": select("allowOnce")}
    with pytest.raises(HostGone):  # decided and stored; the run that it was promised by has not begun
        await host.request("resolveRequest", answer)
    await host.wait()
    assert gated.ran == {}

    session = await gated.again(session, SILENT)

    (ended,) = await session.host.until(lambda: session.events("run.completed"))
    again = await session.host.request("resolveRequest", answer)
    assert gated.ran == {"delete{'a': 1}": 1}
    state = await session.host.request("getState", {"sessionId": "s"})
    assert (state["session"]["status"], state["pendingRequests"]) == ("idle", [])
    assert (ended["data"]["stopReason"], again["status"]) == ("endTurn", "alreadyResolved")


async def test_a_parked_run_that_is_sent_again_still_says_what_it_waits_for(gated: Gated, model: FakeModel) -> None:
    session = await gated.session(SILENT)
    wants(model, ("delete", {"a": 1}))
    result = await session.run("go", runId="r")

    assert (await session.run("go", runId="r"))["pendingRequests"] == result["pendingRequests"]
    session = await gated.again(session, SILENT)
    assert (await session.run("go", runId="r"))["pendingRequests"] == result["pendingRequests"]
