"""What is stored of a request to the host: it ends with the request, however the store did when it was opened."""

import asyncio

import pytest

from protocol.agents import ApprovalConfig, RunOptions
from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, Source
from providers.api.host import HostToolCall, HostUnavailable
from providers.api.tool import tool
from sidecar.agents.consent import GatedCall
from sidecar.agents.output import Progress
from sidecar.agents.sink import Draft
from sidecar.agents.tool_call import NOT_STORED_TEXT
from sidecar.sessions.approvals import Parked
from sidecar.sessions.progress_mirror import ProgressMirror
from sidecar.sessions.run_consent import RunConsent
from sidecar.sessions.run_host import RunHost
from sidecar.sessions.turn_sink import TurnSink
from tests.bench.fake_client import FakeClient
from tests.bench.open_session import Here, open_here

PARKED = Parked(
    message_id="m", run_id="r1", next_run_id="r2", input_ids=(), output_ids=("m",), options=RunOptions()
)  # fmt: skip
CALL = HostToolCall(name="look", call_id="c0", arguments={}, kwargs={}, timeout_ms=None)


@tool
def delete() -> str:
    """Delete."""
    return ""


@pytest.fixture
async def here() -> Here:
    return await open_here(FakeClient([]))


def sink_of(here: Here) -> TurnSink:
    outlet = here.setup.outlet
    return TurnSink(here.session.log, "r1", outlet, ProgressMirror(outlet.notify, None, None), stream=True)


def host_of(here: Here, sink: TurnSink) -> RunHost:
    return RunHost(here.session.requests, sink, here.setup.outlet, "s", "r1", lambda: "cancelled")


async def end_run(here: Here, sink: TurnSink) -> None:
    await here.session.log.append([*sink.take(), Draft("run.completed", {"status": "completed"})], run_id="r1")


async def ends(here: Here) -> list[JsonObject]:
    """How requests ended, of which all that were opened did, and nothing is stored of any."""
    events = [event for event in here.sent if event["type"] in ("request.opened", "request.resolved")]
    assert [event["type"] for event in events] == ["request.opened", "request.resolved"]
    assert len({event["data"]["requestId"] for event in events}) == 1
    assert (await here.store.load("s")).requests == {}
    assert list(here.session.pending_requests()) == []
    return [event["data"] for event in events[1:]]


async def test_a_run_that_is_cancelled_while_its_request_is_stored_closes_it(here: Here) -> None:
    sink = sink_of(here)
    here.store.gate.clear()
    asking = asyncio.create_task(host_of(here, sink).call_tool(CALL))
    await here.store.held.wait()
    asking.cancel()
    await asyncio.wait({asking})
    here.store.gate.set()
    await end_run(here, sink)

    (end,) = await ends(here)
    assert (end["outcome"], end["by"]) == ("failed", "cancel")


async def test_a_request_that_is_stored_late_and_was_never_asked_is_closed(here: Here) -> None:
    sink = sink_of(here)
    here.store.broken = True
    with pytest.raises(HostUnavailable):
        await host_of(here, sink).call_tool(CALL)
    here.store.broken = False
    await end_run(here, sink)

    (end,) = await ends(here)
    assert (end["outcome"], end["by"]) == ("failed", "cancel")


async def test_a_question_of_consent_that_is_stored_late_and_was_never_asked_is_closed(here: Here) -> None:
    sink = sink_of(here)
    consent = RunConsent(
        here.session, sink, here.setup.outlet, "r1", "a", ApprovalConfig(), Progress, lambda: PARKED
    )  # fmt: skip
    call = GatedCall(FunctionCallBlock(call_id="c0", name="delete", arguments={}), delete, Source(type="agent"), True)
    here.store.broken = True
    decided = await consent.ask([call], [Draft("tool.started", {"callId": "c0", "status": "pending"})])
    here.store.broken = False
    await end_run(here, sink)

    assert decided is not None
    assert [(one.approved, one.text) for one in decided.values()] == [(False, NOT_STORED_TEXT)]
    (end,) = await ends(here)
    assert (end["outcome"], end["by"]) == ("cancelled", "cancel")
