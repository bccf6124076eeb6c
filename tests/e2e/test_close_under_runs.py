"""A session that is closed, deleted or only borrowed while a decided run would go on: no run slips in."""

from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, Stall, T
from tests.bench.gated import ALLOW, SILENT, TOOLS, Gated
from tests.bench.host import HostRun, HostSession
from tests.bench.wanted_calls import wants
from tests.bench.wire import Json


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


async def parked(session: HostSession, model: FakeModel) -> Json:
    """Answers the question that a run has left."""
    wants(model, ("delete", {"a": 1}))
    (pending,) = (await session.run("go"))["pendingRequests"]
    return {"sessionId": session.id, "requestId": pending["requestId"], "result": ALLOW}


async def at_work(session: HostSession, model: FakeModel) -> HostRun:
    """Another run, which does not end by itself."""
    model.says(T("working"), Stall())
    run = session.start("long")
    await run.text_contains("working")
    model.otherwise(lambda _: [T("after"), F()])
    return run


def assert_nothing_follows(session: HostSession, request_id: int | str | None) -> None:
    """The answer to this request is the last that was said of the session's runs."""
    messages = session.host.messages
    (answered,) = [place for place, message in enumerate(messages) if message.get("id") == request_id]
    events = [place for place, message in enumerate(messages) if message.get("method") == "run/event"]
    assert events[-1] < answered


@pytest.mark.parametrize("method", ["closeSession", "deleteSession"])
async def test_an_approval_that_comes_while_runs_are_being_stopped_begins_none(
    gated: Gated, model: FakeModel, method: str
) -> None:
    session = await gated.session(SILENT)
    decision = await parked(session, model)
    run = await at_work(session, model)
    host = session.host

    closing = host.ask(method, {"sessionId": session.id})
    refused = host.ask("resolveRequest", decision)

    assert (await refused.message())["error"]["data"]["kind"] == "sessionClosed"
    await closing.result()
    assert (await run.result())["status"] == "cancelled"
    await host.request("getState")
    assert_nothing_follows(session, closing.id)
    assert not gated.ran


async def test_a_decision_that_was_being_stored_as_its_session_closed_is_gone_on_with_when_that_is_opened_again(
    gated: Gated, model: FakeModel
) -> None:
    session = await gated.session(SILENT)
    decision = await parked(session, model)
    await at_work(session, model)
    host = session.host

    resolved = host.ask("resolveRequest", decision)
    closing = host.ask("closeSession", {"sessionId": session.id})

    assert await resolved.result() == {"status": "resolved"}
    await closing.result()
    await host.request("getState")
    assert_nothing_follows(session, closing.id)
    assert not gated.ran
    session = await host.resume_session(session.id, tools=TOOLS)
    await host.until(lambda: gated.ran)
    assert list(gated.ran.values()) == [1]


async def test_a_session_that_is_only_being_updated_is_not_open_for_an_approval(gated: Gated, model: FakeModel) -> None:
    session = await gated.session(SILENT)
    decision = await parked(session, model)
    host = session.host
    del decision["sessionId"]
    for title in ("a", "b", "c", "d"):  # in each of them there are many moments for it
        await host.request("closeSession", {"sessionId": session.id})
        updating = host.ask("updateSession", {"sessionId": session.id, "title": title})
        while not updating.answered:
            assert await host.request("resolveRequest", decision) == {"status": "unknown"}
        assert (await updating.result())["session"]["open"] is False
    assert not gated.ran
