"""F1, F2, F16: kill -9 at named points and at random times; a host that asks again. Nothing is lost or redone."""

import asyncio
import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sidecar
from sidecar.crash_points import POINTS
from tests.bench.busy import answer
from tests.bench.crashes import Crashes
from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostGone
from tests.bench.ledger import Ledger
from tests.bench.promises import hold
from tests.conftest import SCALE, scaled

ROUNDS = 3 if SCALE >= 3 else 1
"""How often the host of F1 does everything; each point is tried at each of its passes up to that."""
ONCE = [point for point in POINTS if point.startswith("store.migrate")]
OF_TOOLS = [point for point in POINTS if point.startswith(("tool.", "approval."))]
"""Tried where there are tools: `test_tool_faults.py`, `test_approval_crashes.py`."""
CELLS = [
    (point, n) for point in POINTS if point not in OF_TOOLS for n in range(1, 1 + (1 if point in ONCE else ROUNDS))
]
CELLS += [(point, 2) for point in ("answer.before", "answer.after")] if ROUNDS == 1 else []  # the answer of a run


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


# ---- F1: named points --------------------------------------------------------------------------------------------


def test_every_named_point_is_passed_somewhere_and_every_passed_one_is_named() -> None:
    root = Path(sidecar.__file__).parent
    passed = [name for path in root.rglob("*.py") for name in re.findall(r'\breached\("(.+?)"\)', path.read_text())]
    assert set(passed) == set(POINTS)


@pytest.mark.parametrize(("point", "n"), CELLS)
async def test_a_kill_at_a_named_point_breaks_no_promise(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, point: str, n: int
) -> None:
    has_past = point not in ONCE
    if has_past:
        await leave_runs_behind(await start_host(store=store, env=model.environment, ledger=ledger), model)
    model.otherwise(answer)
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": f"{point}:{n}"}
    doomed = await start_host(store=store, env={**model.environment, **armed}, ledger=ledger, greet=False)
    with contextlib.suppress(HostGone):
        await doomed.request("initialize")
        await day(doomed, has_past=has_past)
    doomed.hang_up()
    assert await doomed.wait() == -signal.SIGKILL, f"{point} was not passed {n} times"

    host = await start_host(store=store, env=model.environment, ledger=ledger)
    await hold(ledger, host, model.requests)
    await day(host, has_past=has_past)  # the host asks again for what it has no answer of
    tally = await hold(ledger, host, model.requests)
    assert tally.sessions == (2 if has_past else 1) * ROUNDS
    assert tally.runs["absent"] == 0
    assert (await (await host.resume_session("new0")).run("talk last", runId="last"))["status"] == "completed"


async def leave_runs_behind(host: FakeHost, model: FakeModel) -> None:
    """Sessions whose process dies in the middle of their runs."""
    for number in range(ROUNDS):
        session = await host.create_session(sessionId=f"old{number}")
        model.says(T("Once"), Stall())
        await session.start(f"talk past {number}", runId="past").text_contains("Once")
    host.kill()
    await host.wait()


async def day(host: FakeHost, *, has_past: bool) -> None:
    """What a host asks for, under ids of its own."""
    for number in range(ROUNDS):
        new = await host.create_session(sessionId=f"new{number}")
        assert (await new.run(f"talk first {number}", runId="r1"))["status"] in ("completed", "interrupted")
        if has_past:
            old = await host.resume_session(f"old{number}")
            assert (await old.run(f"talk past {number}", runId="past"))["status"] == "interrupted"
            assert (await old.run(f"slow second {number}", runId="r2"))["status"] in ("completed", "interrupted")


# ---- F2: random times --------------------------------------------------------------------------------------------


async def test_kills_at_random_times_lose_nothing_of_eight_busy_sessions(tmp_path: Path, store: str) -> None:
    async with Crashes(store, FakeModel(), tmp_path / "ledger.jsonl", seed=2) as crashes:
        for _ in range(scaled(20)):
            await crashes.kill_once()
        tally = await crashes.hold()
    assert crashes.kills == scaled(20)
    assert tally.runs["completed"] > scaled(20)
    assert tally.runs["interrupted"] > scaled(20) / 4, "the kills did not find anything at work"
    assert crashes.slowest_start_s < 2 * 5


# ---- F16: a host that asks again ---------------------------------------------------------------------------------


async def test_a_run_that_is_asked_for_again_while_it_works_is_done_once(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says(T("a"), Stall(0.3), T("b"))
    first = session.start("go", runId="r")
    await first.text_contains("a")
    again = [session.start("go", runId="r") for _ in range(3)]

    results = [await run.result() for run in (first, *again)]

    assert [result["text"] for result in results] == ["ab"] * 4
    assert all(result == results[0] for result in results)
    assert len(model.requests) == 1
    assert len(session.events("run.completed")) == 1


async def test_a_queued_run_that_is_asked_for_again_is_done_once(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says(T("a"), Stall(0.3), T("b"))
    model.says("c")
    first = session.start("go", runId="r1")
    await first.text_contains("a")
    queued = [session.start("next", runId="r2", whenBusy="queue") for _ in range(3)]

    results = [await run.result() for run in queued]

    assert [result["text"] for result in results] == ["c"] * 3
    assert len(model.requests) == 2
    assert await first.result()


@pytest.mark.parametrize(("point", "status"), [("answer.before", "completed"), ("run.end.before", "interrupted")])
async def test_a_run_whose_answer_was_lost_with_the_process_is_not_done_again(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, point: str, status: str
) -> None:
    """The answer of `createSession` is the first; that of the run, the second, never comes."""
    n = 2 if point.startswith("answer") else 1
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": f"{point}:{n}"}
    host = await start_host(store=store, env={**model.environment, **armed}, ledger=ledger)
    session = await host.create_session(sessionId="s")
    model.says("hello")
    with pytest.raises(HostGone):
        await session.run("go", runId="r")
    await host.wait()

    host = await start_host(store=store, env=model.environment, ledger=ledger)
    session = await host.create_session(sessionId="s")
    answers = await asyncio.gather(*(session.run("go", runId="r") for _ in range(3)))

    assert [told["status"] for told in answers] == [status] * 3
    assert len(model.requests) == 1
    await hold(ledger, host, model.requests)
