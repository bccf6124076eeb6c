"""F15, BR-04 and BR-10: two things at the same instant have exactly one outcome, whichever comes first."""

import asyncio
import random
import time
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostSession
from tests.conftest import scaled

NEAR_S = 0.003
"""How close to the end of a run it is cancelled."""


async def test_a_session_that_is_run_twice_at_once_runs_once(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: [T("a"), Stall(0.002), T("b")])
    dice = random.Random(15)
    ran = 0
    for turn in range(scaled(50)):
        first = session.start(f"first {turn}")
        await asyncio.sleep(dice.choice((0, 0, dice.uniform(0, 2 * NEAR_S))))
        second = session.start(f"second {turn}")
        answers = [await run.asked.message() for run in (first, second)]
        refused = [answer["error"]["data"]["kind"] for answer in answers if "error" in answer]
        assert refused in ([], ["sessionBusy"])
        ran += 2 - len(refused)
        for run, answer in zip((first, second), answers, strict=True):
            assert len(run.events("run.completed")) == ("result" in answer)
            assert not run.events() or "result" in answer, "a run that was refused has events"
    assert len(model.requests) == ran
    assert len(await session.history()) == 2 * ran
    assert (await session.state())["session"]["status"] == "idle"


async def test_a_cancel_around_the_end_of_a_run_gives_one_end(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["at ", "once"])
    took = [await duration(session) for _ in range(5)]
    dice = random.Random(5)
    statuses: list[str] = []
    for turn in range(scaled(20)):
        run = session.start("go")
        await asyncio.sleep(max(0, sorted(took)[2] + dice.uniform(-NEAR_S, NEAR_S)))
        cancel = await cancelled_in_one_way(host, session, run.asked, turn)
        result = await run.result()  # the bench fails on a second answer, and on an event after the end
        (completed,) = run.events("run.completed")
        state = (await session.state(runId=run.id))["run"]
        assert result["status"] == completed["data"]["status"] == state["status"]
        assert result["lastSeq"] == completed["seq"]
        assert result["status"] == "completed" or cancel in ("cancelling", "sent")
        assert result["text"] == "at once" or result["status"] == "cancelled"
        statuses.append(result["status"])
    kept = [role for role, _ in await session.history()]
    assert kept.count("user") == 5 + len(statuses)
    assert kept.count("assistant") >= 5 + statuses.count("completed")
    assert (await session.run("one more"))["text"] == "at once"


async def duration(session: HostSession) -> float:
    """How long a run takes."""
    began = time.monotonic()
    await session.run("measured")
    return time.monotonic() - began


async def cancelled_in_one_way(host: FakeHost, session: HostSession, asked: Any, turn: int) -> str:
    """Cancel by request or by notification, twice now and then; odd cancels change nothing."""
    for odd in (None, {}, {"id": str(asked.id)}, {"id": 999_999}):
        host.notify("$/cancelRequest", odd)
    if turn % 2:
        asked.cancel()
        asked.cancel()
        return "sent"
    first = await session.cancel()
    await session.cancel()
    return first


async def test_a_cancel_and_a_time_limit_at_once_give_one_end(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: [T("a"), Stall()])
    dice = random.Random(16)
    for _ in range(scaled(20)):
        run = session.start("go", timeoutMs=30)
        await asyncio.sleep(0.03 + dice.uniform(-NEAR_S, NEAR_S))
        run.asked.cancel()
        result = await run.result()
        (completed,) = run.events("run.completed")
        assert (result["status"], completed["data"]["status"]) == ("cancelled", "cancelled")
        assert result["stopReason"] == completed["data"]["stopReason"]
        assert result["stopReason"] in ("cancelled", "timeout")


@pytest.mark.parametrize("replay", ["none", "start", "seq"])
async def test_resuming_at_any_instant_of_a_run_leaves_one_whole_stream(
    start_host: Any, model: FakeModel, replay: str
) -> None:
    """The bench holds the chain of `prevSeq` unbroken, also through each replay."""
    host: FakeHost = await start_host(env=model.environment)
    session = await host.create_session()
    epoch = session.opened["session"]["epoch"]
    model.otherwise(lambda request: [T("a"), Stall(0.005), T("b"), T("c")])
    dice = random.Random(17)
    for turn in range(scaled(16)):
        run = session.start("go")
        again: list[dict[str, Any]] = []
        for _ in range(3):
            await asyncio.sleep(dice.uniform(0, 0.008))
            cursor = {"type": replay, **({"seq": 2 * turn, "epoch": epoch} if replay == "seq" else {})}
            again.append(await host.request("resumeSession", {"sessionId": session.id, "replayFrom": cursor}))
        assert (await run.result())["text"] == run.text() == "abc"
        assert len({event["seq"] for event in run.events("run.completed")}) == 1
        for answer in again:
            assert answer["session"]["status"] == ("running" if "activeRun" in answer else "idle")
        if replay == "none":
            seqs = [event["seq"] for event in session.durable()]
            assert seqs == list(range(1, len(seqs) + 1)), "an event came twice, or not at all"
    found = await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0, "limit": 1000})
    assert {event["seq"] for event in found["events"]} == {event["seq"] for event in session.durable()}


async def test_closing_and_running_at_once_never_loses_a_run(start_host: Any, model: FakeModel, store: str) -> None:
    host: FakeHost = await start_host(store=store, env=model.environment)
    session = await host.create_session(sessionId="s")
    model.otherwise(lambda request: ["quick"])
    dice = random.Random(18)
    for _ in range(scaled(16)):
        run = session.start("go")
        await asyncio.sleep(dice.uniform(0, 0.006))
        close = host.ask("closeSession", {"sessionId": "s"})
        await close.result()
        result = await run.result()
        assert result["status"] in ("completed", "cancelled", "interrupted")
        assert (await session.state(runId=run.id))["run"]["status"] == result["status"]
        opened = await host.request("resumeSession", {"sessionId": "s"})
        assert "recovered" not in opened


async def test_a_run_that_queues_before_the_first_one_has_begun_keeps_its_events(
    start_host: Any, model: FakeModel, store: str
) -> None:
    """Its `run.queued` is the session's first event then."""
    host: FakeHost = await start_host(store=store, env=model.environment)
    model.otherwise(lambda request: ["quick"])
    queued_first = rounds = 0
    while rounds < scaled(8) or (not queued_first and rounds < scaled(200)):
        rounds += 1
        session = await host.create_session()
        runs = [session.start("one"), session.start("two", whenBusy="queue"), session.start("three", whenBusy="queue")]
        for run in runs:
            assert (await run.result())["status"] == "completed"
        found = await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0, "limit": 1000})
        assert (found["status"], found["firstSeq"]) == ("ok", 1)
        assert [event["seq"] for event in found["events"]] == [event["seq"] for event in session.durable()]
        queued_first += found["events"][0]["type"] == "run.queued"
    assert queued_first, "no run queued early enough"
