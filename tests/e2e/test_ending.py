"""Requests that meet the sidecar's end: refused, or cut, with an error that is true; and no run begins any more."""

import asyncio
import signal
from typing import Any

from tests.bench.fake_model import F, FakeModel, Stall, T
from tests.bench.gated import ALLOW, SILENT, Gated
from tests.bench.wanted_calls import wants

SIGTERM_CODE = 128 + signal.SIGTERM
CUT_S = 4
"""Well below the 5 s that a run may take to be stored."""


async def test_after_a_signal_nothing_is_served_and_what_waits_is_told_to_ask_again(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host = await start_host(store=store, env=model.environment, fresh=True)
    first, second = await host.create_session(), await host.create_session()
    model.says(T("Once"), Stall())
    run = first.start("tell")
    await run.text_contains("Once")
    poll = host.ask("getEvents", {"sessionId": second.id, "afterSeq": 999, "waitMs": 60_000})
    async with asyncio.timeout(CUT_S):
        host.kill(signal.SIGTERM)
        assert (await run.result())["status"] == "interrupted"
        assert not poll.answered, "the sidecar is still ending"

        late = host.ask("run", {"sessionId": second.id, "input": "more"})
        for asked in (late, host.ask("getState"), poll):
            error = (await asked.message())["error"]
            assert (error["code"], error["data"]["kind"], error["data"]["retryable"]) == (
                -32802,
                "serverCancelled",
                True,
            )
        assert await host.wait() == SIGTERM_CODE
    assert len(model.requests) == 1
    assert second.events() == []


async def test_shutdown_is_answered_after_a_signal_too(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(store=store, env=model.environment, fresh=True)
    session = await host.create_session()
    model.says(T("Once"), Stall())
    run = session.start("tell")
    await run.text_contains("Once")
    host.ask("getEvents", {"sessionId": session.id, "afterSeq": 999, "waitMs": 60_000})
    host.kill(signal.SIGTERM)
    await run.result()

    down, late = host.ask("shutdown"), host.ask("getState")

    assert (await late.message())["error"]["code"] == -32600
    assert await down.result() is None
    assert await host.wait() == SIGTERM_CODE


async def test_a_decision_that_is_stored_during_shutdown_is_gone_on_with_by_the_next_process(
    start_host: Any, model: FakeModel, store: str
) -> None:
    gated = Gated(start_host, model, store)
    session = await gated.session(SILENT)
    wants(model, ("delete", {"a": 1}))
    (pending,) = (await session.run("go"))["pendingRequests"]
    model.otherwise(lambda _: [T("after"), F()])
    params = {"sessionId": session.id, "requestId": pending["requestId"], "result": ALLOW}

    resolved, down = session.host.ask("resolveRequest", params), session.host.ask("shutdown")

    assert await resolved.result() == {"status": "resolved"}
    await down.result()
    assert len(session.events("run.started")) == 1
    assert not gated.ran
    session = await gated.again(session, SILENT)
    (completed,) = await session.host.until(lambda: session.events("run.completed"))
    assert completed["data"]["status"] == "completed"
    assert list(gated.ran.values()) == [1]
