"""Consent that is taken back, comes second, or has nothing to act on yet: nothing runs that is not wanted any more."""

import json
from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, Stall, T
from tests.bench.gated import SILENT, TOOLS, Gated, asked, select
from tests.bench.host import Refuses, RpcError
from tests.bench.wanted_calls import told, wants


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


async def parked(gated: Gated, model: FakeModel, **params: Any) -> tuple[Any, str]:
    """A session with one question, and the question's id."""
    session = await gated.session(SILENT, **params)
    session.host.serves["host/beforeRun"] = session.host.serves["host/afterRun"] = lambda params: {}
    wants(model, ("delete", {"a": 1}))
    (pending,) = (await session.run("go"))["pendingRequests"]
    return session, pending["requestId"]


async def busy(session: Any, model: FakeModel) -> Any:
    """A run that has the session until it is cancelled."""
    model.says(T("…"), Stall())
    run = session.start("slow", runId="slow")
    await run.text_contains("…")
    return run


@pytest.mark.parametrize("way", ["resolveRequest", "approvalResponse"])
async def test_a_run_that_is_cancelled_before_it_begins_takes_its_consent_with_it(
    gated: Gated, model: FakeModel, way: str
) -> None:
    session, request_id = await parked(gated, model)
    slow = await busy(session, model)
    answer = {"requestId": request_id, "result": select("allowOnce")}
    if way == "resolveRequest":
        run_id = (await session.host.request("resolveRequest", answer))["runId"]
    else:
        block = {"type": "approvalResponse", "requestId": request_id, "approved": True}
        run_id = "decides"
        session.start([{"role": "user", "content": [block]}], runId=run_id, whenBusy="queue")
    await session.host.until(lambda: [e for e in session.events("run.queued") if e["runId"] == run_id])

    await session.host.request("cancelRun", {"sessionId": "s", "runId": run_id})
    await session.host.until(lambda: [e for e in session.events("run.completed") if e["runId"] == run_id])
    await session.cancel(runId="slow")
    await slow.result()

    rejected = {"requestId": request_id, "result": select("rejectOnce")}
    assert await session.host.request("resolveRequest", rejected) == {"status": "alreadyResolved"}
    model.says(T("hello"), F())
    await session.run("hello")
    assert gated.ran == {}
    assert "Cancelled" in told(model)[0][1]
    state = await session.host.request("getState", {"sessionId": "s"})
    assert state["session"]["status"] == "idle"


async def test_consent_is_acted_on_in_the_run_that_gave_it(gated: Gated, model: FakeModel) -> None:
    session, request_id = await parked(gated, model)
    slow = await busy(session, model)
    block = {"type": "approvalResponse", "requestId": request_id, "approved": True}
    model.says(T("hello"), F())
    model.says(T("done"), F())
    other = session.start("hello", runId="other", whenBusy="queue")
    decides = session.start([{"role": "user", "content": [block]}], runId="decides", whenBusy="queue")
    await session.host.until(lambda: session.events("run.queued")[1:])

    await session.cancel(runId="slow")

    for run in (slow, other, decides):
        await run.result()
    assert gated.ran == {"delete{'a': 1}": 1}
    (asked_for,) = session.host.asked("host/callTool")
    assert asked_for["params"]["runId"] == "decides"


async def test_what_was_allowed_and_is_not_begun_can_be_rejected_after_all(gated: Gated, model: FakeModel) -> None:
    provider = {"type": "host", "sourceId": "notes"}
    session, request_id = await parked(gated, model, contextProviders=[provider])
    session.host.serves["host/beforeRun"] = lambda params: Refuses(-1, "broken")
    answer = {"requestId": request_id, "result": select("allowOnce")}
    run_id = (await session.host.request("resolveRequest", answer))["runId"]
    await session.host.until(lambda: [e for e in session.events("run.completed") if e["runId"] == run_id])
    session.host.serves["host/beforeRun"] = lambda params: {}
    model.says(T("as you like"), F())

    again = await session.host.request("resolveRequest", {"requestId": request_id, "result": select("rejectOnce")})
    await session.host.until(lambda: [e for e in session.events("run.completed") if e["runId"] == again["runId"]])

    assert (again["status"], gated.ran) == ("resolved", {})
    assert "rejected by user" in told(model)[0][1]


@pytest.mark.parametrize("first", ["rejectOnce", "allowOnce"])
async def test_of_two_answers_in_one_read_the_first_counts(gated: Gated, model: FakeModel, first: str) -> None:
    session = await gated.session()
    wants(model, ("delete", {"a": 1}))
    model.says(T("ok"), F())
    run = session.start("go")
    (request,) = await asked(session)
    second = "allowOnce" if first == "rejectOnce" else "rejectOnce"
    late = {"requestId": request["params"]["requestId"], "result": select(second)}

    messages = [
        {"jsonrpc": "2.0", "id": request["id"], "result": select(first)},
        {"jsonrpc": "2.0", "id": 1, "method": "resolveRequest", "params": late},
    ]
    session.host.write("".join(f"{json.dumps(message)}\n" for message in messages).encode())

    await run.result()
    assert sum(gated.ran.values()) == (first == "allowOnce")
    (answer,) = await session.host.until(lambda: [m for m in session.host.messages if m.get("id") == 1])
    assert answer["result"]["status"] == "alreadyResolved"


async def test_a_promised_run_waits_for_the_host_s_tools(gated: Gated, model: FakeModel) -> None:
    session, request_id = await parked(gated, model)
    await busy(session, model)
    answer = {"requestId": request_id, "result": select("allowOnce")}
    await session.host.request("resolveRequest", answer)
    session.host.kill()
    await session.host.wait()
    host = await gated.start(SILENT)

    without = await host.resume_session("s")

    assert [warning["kind"] for warning in without.opened["warnings"]] == ["hostPartsMissing"]
    await host.request("getState")
    assert without.events("run.started") == []
    model.says(T("gone"), F())
    await host.resume_session("s", tools=TOOLS)
    await host.until(lambda: without.events("run.completed"))
    assert gated.ran == {"delete{'a': 1}": 1}


@pytest.mark.parametrize("answer", [{}, {"result": {}, "error": {"code": 1, "message": "no"}}])
async def test_an_answer_has_a_result_or_an_error(gated: Gated, model: FakeModel, answer: dict[str, Any]) -> None:
    session, request_id = await parked(gated, model)

    with pytest.raises(RpcError) as refused:
        await session.host.request("resolveRequest", {"requestId": request_id, **answer})

    assert refused.value.kind == "invalidParams"
    state = await session.host.request("getState", {"sessionId": "s"})
    assert [one["requestId"] for one in state["pendingRequests"]] == [request_id]
