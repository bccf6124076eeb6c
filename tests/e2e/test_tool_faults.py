"""F1, F7, F12, L1 and BR-03, BR-05, BR-07, BR-09 with tools: bad tools hurt nobody, and none is ever run twice."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from tests.bench.fake_model import DONE, TC, F, FakeModel, Recorded, Reply, Stall, T
from tests.bench.host import FakeHost, HostGone
from tests.bench.ledger import Ledger
from tests.bench.processes import children, descendants, gone, rss_bytes
from tests.bench.promises import hold
from tests.bench.tool_plugins import ToolPlugins, tool_plugins
from tests.bench.waiting import eventually
from tests.conftest import SCALE
from tests.e2e.test_faults_host import GONE_S, PARENT, WAYS, sidecar_of, vanish

SLACK = 10
"""How many times the stated bound a loaded machine may take."""
MIB = 1 << 20


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


@pytest.fixture
def plugins(tmp_path: Path) -> ToolPlugins:
    """Tools, good and bad."""
    return tool_plugins(tmp_path)


def wants(model: FakeModel, name: str, **arguments: Any) -> None:
    """The model's next answer calls this tool."""
    model.says(TC(0, "c1", name, json.dumps(arguments)), F("tool_calls"))


# ---- crashes -----------------------------------------------------------------------------------------------------


async def test_a_tool_that_was_running_when_the_process_died_is_not_run_again(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, plugins: ToolPlugins
) -> None:
    """BR-09."""
    options = {"store": store, "env": model.environment, "ledger": ledger, "args": plugins.args}
    doomed: FakeHost = await start_host(**options)
    session = await doomed.create_session(sessionId="s")
    wants(model, "place_order", dish="soup", seconds=30)
    session.start("soup!", runId="r")
    await plugins.acted()
    doomed.kill()
    await doomed.wait()

    host = await start_host(**options)
    session = await host.resume_session("s", replayFrom={"type": "start"})
    assert session.opened["recovered"] == {"interruptedRuns": ["r"], "closedCalls": ["c1"]}
    await host.until(lambda: session.events("run.completed"))
    (told,) = session.events("tool.completed")
    assert told["data"]["status"] == "unknown"
    model.says("As you wish.")
    await session.run("go on", runId="next")

    assert plugins.effects == ["soup"]
    assert "unknown" in model.last_request.tool_results["c1"]
    await hold(ledger, host, model.requests)


@pytest.mark.parametrize(
    ("point", "effects", "status"),
    [
        ("tool.intent.before", [], "notRun"),
        ("tool.intent.after", [], "unknown"),
        ("tool.effect.after", ["soup"], "unknown"),
    ],
)
async def test_a_kill_around_a_call_leaves_one_true_result_and_at_most_one_effect(
    start_host: Any,
    model: FakeModel,
    store: str,
    ledger: Ledger,
    plugins: ToolPlugins,
    point: str,
    effects: list[str],
    status: str,
) -> None:
    options = {"store": store, "ledger": ledger, "args": plugins.args}
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": f"{point}:1"}
    doomed: FakeHost = await start_host(env={**model.environment, **armed}, **options)
    session = await doomed.create_session(sessionId="s")
    wants(model, "place_order", dish="soup")
    with pytest.raises(HostGone):
        await session.run("soup!", runId="r")
    assert await doomed.wait() == -signal.SIGKILL

    host = await start_host(env=model.environment, **options)
    session = await host.resume_session("s", replayFrom={"type": "start"})
    model.says("Yes.")
    await session.run("go on", runId="next")

    told = [event["data"]["status"] for event in session.events("tool.completed")]
    assert told in ([status], [] if point == "tool.intent.before" else [status])
    assert plugins.effects == effects
    await hold(ledger, host, model.requests)


async def test_results_that_were_there_before_the_crash_are_kept(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, plugins: ToolPlugins
) -> None:
    options = {"store": store, "env": model.environment, "ledger": ledger, "args": plugins.args}
    doomed: FakeHost = await start_host(**options)
    session = await doomed.create_session(sessionId="s")
    model.says(
        TC(0, "quick", "place_order", '{"dish": "tea"}'),
        TC(1, "slow", "place_order", '{"dish": "soup", "seconds": 30}'),
        F("tool_calls"),
    )
    session.start("order", runId="r")
    await doomed.until(lambda: session.events("tool.completed"))
    doomed.kill()
    await doomed.wait()

    host = await start_host(**options)
    session = await host.resume_session("s")
    assert session.opened["recovered"]["closedCalls"] == ["slow"]
    model.says("Yes.")
    await session.run("go on", runId="next")

    assert model.last_request.tool_results["quick"] == "ordered tea"
    assert "unknown" in model.last_request.tool_results["slow"]
    await hold(ledger, host, model.requests)


# ---- the host goes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_a_sidecar_whose_host_vanishes_while_a_tool_runs_leaves_no_child_behind(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, plugins: ToolPlugins, way: str
) -> None:
    """F7 and BR-03(c). A script's own end of input is no such end: there the tool is waited for."""
    framing, code = WAYS[way]
    under = (sys.executable, "-c", PARENT) if way == "the parent is killed" else ()
    options = {"store": store, "env": model.environment, "ledger": ledger}
    host: FakeHost = await start_host(framing=framing, under=under, args=plugins.args, **options)
    session = await host.create_session(sessionId="s")
    pid = await sidecar_of(host) if under else host.process.pid
    finishes = way == "stdin alone is closed"
    wants(model, "child", seconds=1 if finishes else 300)
    model.says("Slept.")
    session.start("sleep", runId="r")
    await plugins.acted()
    (child,) = await eventually(lambda: descendants(pid))

    vanish(host, way)
    async with asyncio.timeout(GONE_S * SLACK):
        await gone(pid)
        await gone(child)
        ended = await host.process.wait()
    assert code is None or ended == code

    again = await start_host(args=plugins.args, **options)
    tally = await hold(ledger, again, model.requests)
    assert dict(tally.runs) == {"completed" if finishes else "interrupted": 1}


# ---- bad tools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("fail", {}, "Error: Function failed."),
        ("leave", {}, "Error: Function failed."),
        ("noisy", {}, "quiet"),
        ("flood", {"megabytes": 8}, None),
    ],
)
async def test_a_bad_tool_hurts_nobody(
    start_host: Any, model: FakeModel, plugins: ToolPlugins, tool: str, arguments: dict[str, Any], told: str | None
) -> None:
    """F12 and BR-07: the strict parser of the host finds nothing but frames."""
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    bad, good = await host.create_session(), await host.create_session()
    model.otherwise(lambda request: played(request, tool, arguments))
    run = bad.start("be bad")
    answers: list[float] = []
    while not run.asked.answered:
        asked = time.monotonic()
        await good.state()
        answers.append(time.monotonic() - asked)

    assert (await run.result())["status"] == "completed"
    assert (await good.run("hello"))["text"] == "fine"
    assert max(answers) < 0.1 * SLACK
    result = next(r for r in model.requests if r.tool_results).tool_results["c1"]
    if told is None:
        assert 5 * MIB <= len(result.encode()) < 5 * MIB + 200, "cut, with a note"
        assert "left out" in result
    else:
        assert result == told


def played(request: Recorded, tool: str, arguments: dict[str, Any]) -> list[Any]:
    """One call for the bad session, plain words for the rest."""
    if request.last_user_text == "be bad" and not request.tool_results:
        return [TC(0, "c1", tool, json.dumps(arguments)), F("tool_calls")]
    return [T("fine")]


async def test_a_run_whose_tool_blocks_can_be_cancelled_and_the_session_used_at_once(
    start_host: Any, model: FakeModel, plugins: ToolPlugins
) -> None:
    """BR-05(b)."""
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    session = await host.create_session()
    wants(model, "block", seconds=30)
    run = session.start("block")
    await plugins.acted()
    other = await host.create_session()
    model.says("quick")
    assert (await other.run("hello"))["text"] == "quick"

    asked = time.monotonic()
    await session.cancel()
    result = await run.result()

    assert time.monotonic() - asked < 1 * SLACK
    assert (result["status"], result["stopReason"]) == ("cancelled", "cancelled")
    (completed,) = session.events("tool.completed")
    assert completed["data"]["status"] == "cancelled"
    model.says("still here")
    assert (await session.run("and now?"))["text"] == "still here"
    assert set(model.last_request.tool_results) == {"c1"}
    assert children(host.process.pid) == []


async def test_a_tool_that_hangs_is_given_up_at_its_limit(start_host: Any, model: FakeModel, tmp_path: Path) -> None:
    plugins = tool_plugins(tmp_path, config="[limits]\ntool_timeout_ms = 200")
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    session = await host.create_session()
    wants(model, "block", seconds=30)
    model.says("Too slow.")

    result = await session.run("block")

    assert result["text"] == "Too slow."
    assert "200" in model.last_request.tool_results["c1"] or "0.2" in model.last_request.tool_results["c1"]


# ---- load --------------------------------------------------------------------------------------------------------

SESSIONS = 256 if SCALE >= 4 else 64


async def test_sixty_four_sessions_stream_and_call_a_tool_at_once(
    start_host: Any, model: FakeModel, store: str, plugins: ToolPlugins
) -> None:
    """L1, with its tool call."""
    host: FakeHost = await start_host(store=store, args=plugins.args, env=model.environment, fresh=True)

    def answer(request: Recorded) -> Reply | list[Any]:
        if not request.tool_results:
            return [TC(0, "c1", "place_order", '{"dish": "tea"}'), F("tool_calls")]
        return Reply([piece for _ in range(50) for piece in (Stall(0.05), T("word "))] + [F("stop"), DONE])

    model.otherwise(answer)
    sessions = [await host.create_session() for _ in range(SESSIONS)]
    runs = [session.start("go") for session in sessions]
    answers: list[float] = []
    while not all(run.asked.answered for run in runs):
        asked = time.monotonic()
        await sessions[len(answers) % SESSIONS].state()
        answers.append(time.monotonic() - asked)
        await asyncio.sleep(0.02)

    results = [await run.result() for run in runs]
    assert {result["status"] for result in results} == {"completed"}
    assert {len(result["text"].split()) for result in results} == {50}
    assert plugins.effects == ["tea"] * SESSIONS
    assert quantiles(answers, n=100)[98] < 0.1 * SLACK
    assert rss_bytes(host.process.pid) < (110 + SESSIONS) * MIB
