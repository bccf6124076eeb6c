"""One conversation over both framings and both transports is the same conversation; so is a cancel at any instant."""

import asyncio
import random
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError
from tests.bench.wire import Framing, Json
from tests.conftest import scaled

WAYS: list[tuple[Framing, str]] = [(framing, way) for framing in ("ndjson", "header") for way in ("pipes", "threads")]
VARIES = {"time", "createdAt", "updatedAt", "startedAt", "endedAt", "epoch", "instanceId", "errorId", "messageId"} | {
    "durationMs", "uptimeMs", "rssBytes", "lastBeforeMs", "lastAfterMs", "updateId", "contextUsed",
}  # fmt: skip


async def conversation(host: FakeHost, model: FakeModel) -> list[Json]:
    """A bit of everything; all that the sidecar said, without what differs from one process to the next."""
    session = await host.create_session(sessionId="s", state={"n": 1}, title="饺子")
    model.says("hello", " there")
    await session.run("hi 🥟", runId="r1")
    model.says(T("half"), Stall())
    run = session.start("cut", runId="r2")
    await run.text_contains("half")
    await session.cancel()
    await run.result()
    model.fails(400)
    with pytest.raises(RpcError):
        await session.run("bad", runId="r3")
    await host.refusal("getStat")
    await host.refusal("getState", {"sessionId": 5})
    await host.exchange([])
    await session.state(runId="r1")
    await session.history()
    model.says("x" * 300_000)
    await session.run("long", runId="r4")
    await host.resume_session("s", replayFrom={"type": "start"})
    await host.request("closeSession", {"sessionId": "s"})
    await host.request("shutdown")
    return [steady(message) for message in host.messages]


def steady(value: Any) -> Any:
    """A value without the fields that vary."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VARIES}
    return [steady(item) for item in value] if isinstance(value, list) else value


async def test_framing_and_transport_make_no_difference(start_host: Any, model: FakeModel) -> None:
    told: dict[tuple[str, str], list[Json]] = {}
    for framing, way in WAYS:
        env = {**model.environment, "AGENT_SIDECAR_TRANSPORT": way}
        host = await start_host(framing=framing, env=env)
        told[framing, way] = await conversation(host, model)
        host.notify("exit")
        assert await host.wait() == 0

    first = told[WAYS[0]]
    assert len(first) > 40
    for way in WAYS[1:]:
        assert told[way] == first, way


async def test_a_cancel_at_any_instant_gives_one_end_and_one_answer(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["at once"])
    dice = random.Random(4)
    for _ in range(scaled(20)):
        run = session.start("go")
        await asyncio.sleep(dice.uniform(0, 0.003))
        run.asked.cancel()
        result = await run.result()  # the bench fails on a second answer, and on an event after the end
        (completed,) = run.events("run.completed")
        state = (await session.state(runId=run.id))["run"]
        assert result["status"] == completed["data"]["status"] == state["status"]
        assert result["status"] in ("completed", "cancelled")
        assert result["lastSeq"] == completed["seq"]
        run.asked.cancel()
    assert (await session.run("one more"))["text"] == "at once"
