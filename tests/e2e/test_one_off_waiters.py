"""Who waits for news of a one-off run hears at once when it is forgotten."""

import asyncio
from typing import Any

from sidecar.sessions.tickets import KEPT_ONE_OFF_RUNS
from tests.bench.fake_model import F, FakeModel, T


async def test_a_wait_for_events_ends_when_the_run_is_forgotten(start_host: Any, model: FakeModel) -> None:
    model.otherwise(lambda _: [T("ok"), F()])
    host = await start_host(env=model.environment)
    await host.request("run", {"input": "x", "runId": "first"})
    session_id = host.events()[-1]["sessionId"]
    waiting = host.ask("getEvents", {"sessionId": session_id, "afterSeq": 999, "waitMs": 600_000})

    others = [host.ask("run", {"input": "x"}) for _ in range(KEPT_ONE_OFF_RUNS)]
    for other in others:
        await other.result()

    async with asyncio.timeout(5):
        assert (await waiting.message())["error"]["data"]["kind"] == "sessionNotFound"
