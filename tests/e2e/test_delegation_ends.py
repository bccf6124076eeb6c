"""How delegated runs end, over the wire: cancelled, failed, out of time, killed; always before the call they are of."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.delegating import asks, cast, of, of_children, said, shown, starter
from tests.bench.fake_model import EOF, FakeModel, Raw, Reply, Stall, T
from tests.bench.host import HostGone, HostSession
from tests.bench.ledger import Ledger
from tests.bench.promises import hold
from tests.bench.promises_delegated import delegated

TASK = {"task": "What is tea?"}


@pytest.fixture
async def start(start_host: Any, tmp_path: Path, model: FakeModel) -> Any:
    """Starts a sidecar with the agents of the bench."""
    return starter(start_host, tmp_path, model)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


@pytest.fixture
async def boss(start: Any) -> HostSession:
    """A session of the agent that has others work for it."""
    return await (await start()).create_session(sessionId="s", agent="boss")


async def test_cancelling_the_caller_cancels_what_it_has_delegated(boss: HostSession, model: FakeModel) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK))], researcher=[[T("Let me"), Stall()]])
    run = boss.start("Tell me of tea", runId="r")
    await boss.host.until(lambda: of_children(boss.events("message.delta")))
    assert (await boss.state())["activeRun"]["runId"] == "r"
    child = of_children(boss.events("run.started"))[0]["runId"]
    seen = await boss.host.request("explainRun", {"sessionId": "s", "runId": child})
    assert (seen["agent"], len(seen["calls"])) == ("Research Agent", 1)

    assert await boss.cancel() == "cancelling"
    result = await run.result()

    assert result["status"] == "cancelled"
    ends = [(event["data"]["status"], "parentRunId" in event) for event in boss.events("run.completed")]
    assert ends == [("cancelled", True), ("cancelled", False)]
    assert [event["data"]["status"] for event in boss.events("tool.completed")] == ["cancelled"]
    assert shown(boss.events(), "r")[-5:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    assert "abandoned" not in {warning["kind"] for warning in result["warnings"]}
    assert "activeRun" not in await boss.state()


async def test_a_delegated_run_can_be_cancelled_by_its_own_id_and_its_caller_goes_on(
    boss: HostSession, model: FakeModel
) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[[T("Let me"), Stall()]])
    run = boss.start("Tell me of tea")
    await boss.host.until(lambda: of_children(boss.events("message.delta")))
    child = of_children(boss.events("run.started"))[0]["runId"]

    assert await boss.cancel(runId=child) == "cancelling"

    assert (await run.result())["text"] == "Never mind."
    assert (await boss.state(runId=child))["run"]["status"] == "cancelled"
    assert "stopped" in of(model, "boss")[-1].tool_results["c0"]
    assert await boss.cancel(runId=child) == "alreadyFinished"


async def test_a_delegated_run_that_fails_is_an_error_result_and_its_caller_goes_on(
    boss: HostSession, model: FakeModel
) -> None:
    broken = Reply([Raw(b'{"error": {"message": "no such tea"}}'), EOF], 400, {"content-type": "application/json"})
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[broken])

    result = await boss.run("Tell me of tea")

    assert result["text"] == "Never mind."
    (end,) = of_children(boss.events("run.completed"))
    assert (end["data"]["status"], end["data"]["error"]["data"]["kind"]) == ("failed", "modelBadRequest")
    told = of(model, "boss")[-1].tool_results["c0"]
    assert told == f"Error: Agent 'Research Agent' failed: {end['data']['error']['message']}"
    assert [event["data"]["status"] for event in boss.events("tool.completed")] == ["failed"]


async def test_a_call_whose_time_is_over_ends_the_delegated_run_before_it_is_told(start: Any, model: FakeModel) -> None:
    session = await (await start(limits="tool_timeout_ms = 300")).create_session(agent="boss")
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[[T("Let me"), Stall()]])

    result = await session.run("Tell me of tea", runId="r")

    assert result["text"] == "Never mind."
    assert shown(session.events(), "r")[-6:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    assert "did not end within 0.3 s" in of(model, "boss")[-1].tool_results["c0"]
    assert [event["data"]["status"] for event in session.events("run.completed")] == ["cancelled", "completed"]


async def test_a_delegated_run_that_makes_nothing_of_a_cancel_still_ends_before_its_caller(
    start: Any, model: FakeModel
) -> None:
    session = await (await start()).create_session(agent="boss")
    cast(model, boss=[asks(("Research_Agent", TASK))], researcher=[asks(("stubborn", {}))])
    run = session.start("Tell me of tea", runId="r")
    await session.host.until(lambda: len(session.events("tool.started")) == 2)

    await session.cancel()
    result = await run.result()

    assert result["status"] == "cancelled"
    assert shown(session.events(), "r")[-7:] == [
        ("child", "tool.completed"),
        ("child", "message.completed"),
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    delegated("s", session.durable())


@pytest.mark.parametrize(
    "point",
    ["run.begin.before:2", "run.begin.after:2", "tool.intent.before:2", "tool.intent.after:2", "tool.effect.after:1",
     "run.end.before:1", "run.end.after:1", "tool.effect.after:2", "run.end.before:2"],
)  # fmt: skip
async def test_a_kill_at_a_named_point_of_a_delegating_run_breaks_no_promise(
    start: Any, store: str, model: FakeModel, ledger: Ledger, point: str
) -> None:
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": point}
    doomed = await start(store=store, ledger=ledger, env=armed)
    session = await doomed.create_session(sessionId="s", agent="boss")
    cast(
        model,
        boss=lambda request: (
            asks(("shared", {"query": f"sub {request.last_user_text}"})) if request.roles[-1] == "user" else said("ok")
        ),
        researcher=[asks(("remember", {"topic": "tea"})), said("Kept.")],
    )
    with contextlib.suppress(HostGone):
        await session.run("first", runId="r1")
    doomed.hang_up()
    assert await doomed.wait() == -signal.SIGKILL

    host = await start(store=store, ledger=ledger)
    await hold(ledger, host, model.requests)
    again = await host.resume_session("s")
    assert (await again.run("first", runId="r1"))["status"] == "interrupted"
    assert (await again.run("second", runId="r2"))["text"] == "ok"
    assert (await again.state())["state"]["topic"] == "tea"
    await hold(ledger, host, model.requests)


async def test_a_kill_in_a_delegated_run_ends_both_runs_and_leaves_the_call_unknown(
    start: Any, store: str, model: FakeModel, ledger: Ledger
) -> None:
    doomed = await start(store=store, ledger=ledger)
    session = await doomed.create_session(sessionId="s", agent="boss")
    cast(model, boss=[asks(("shared", {"query": "tea"})), said("Again.")], researcher=[[T("Let me"), Stall()]])
    session.start("Tell me of tea", runId="r")
    await doomed.until(lambda: of_children(session.events("message.delta")))
    child = of_children(session.events("run.started"))[0]["runId"]
    doomed.kill()
    await doomed.wait()

    host = await start(store=store, ledger=ledger)
    resumed = await host.resume_session("s")

    assert resumed.opened["recovered"]["interruptedRuns"] == [child, "r"]
    events = (await host.request("getEvents", {"sessionId": "s", "afterSeq": 0}))["events"]
    assert shown(events, "r")[-4:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "run.completed"),
    ]
    assert [event["data"]["status"] for event in events if event["type"] == "tool.completed"] == ["unknown"]
    assert {event["data"]["status"] for event in events if event["type"] == "run.completed"} == {"interrupted"}
    await hold(ledger, host, model.requests)
