"""Tool calls that go wrong in odd ways: stopped, abandoned, flooding, exiting, or returning what is hardly a value."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from protocol.messages import FunctionResultBlock
from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import CallNext, MiddlewareFailure, function_middleware
from providers.api.tool import FunctionTool, ToolError, tool
from sidecar.agents import tool_progress
from sidecar.agents.runner import Execution
from sidecar.agents.tool_call import FAILED_TEXT
from sidecar.agents.tool_progress import MOST_WAITING, ToolProgress
from sidecar.config.limits import Limits
from sidecar.errors import MiddlewareFailed
from sidecar.sessions.open_calls import close_calls
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, says
from tests.bench.fake_sink import FakeSink
from tests.bench.tool_calls import asks, call, result_blocks, text_of, told

Context = FunctionInvocationContext


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends every thread that waits for it, at the latest with the test."""
    event = threading.Event()
    yield event
    event.set()


def agent(*answers: Any, tools: Any, **limits: int) -> AgentRun:
    return AgentRun(FakeClient(*answers, says("done")), plan=plan_of(tools=tools, limits=Limits(**limits)))


async def one_result(made: FunctionTool, **limits: int) -> tuple[str, bool]:
    """What the model is told of one call, in a run that goes on to its end."""
    execution = await agent(asks(made.name), tools=[made], **limits).say("go")
    assert execution.progress.text == "done"
    [block] = result_blocks(execution.progress.messages)
    return text_of(block), bool(block.is_error)


async def stopped(run: AgentRun, when: asyncio.Event) -> Execution:
    """A run that is cancelled when the event is set."""
    execution = run.execution("go")
    work = asyncio.create_task(execution.run())
    await asyncio.wait_for(when.wait(), 5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await run.sink.commit()
    return execution


def closed(execution: Execution) -> dict[str, str]:
    """What stands in the transcript of each call, once the run has been ended."""
    progress = execution.progress
    closing = close_calls(progress.transcript, "cancelled", progress.batch)
    blocks = [*result_blocks(progress.transcript), *(result_blocks([closing.message]) if closing is not None else ())]
    assert len({block.call_id for block in blocks}) == len(blocks)
    return {block.call_id: text_of(block) for block in blocks}


# ---- stopped runs ----------------------------------------------------------------------------------------------------


async def test_a_stopped_run_stops_its_tools_and_keeps_the_results_of_those_that_had_ended() -> None:
    slow_began, quick_told, told_stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        slow_began.set()
        try:
            await asyncio.Event().wait()
        finally:
            told_stop.set()

    @tool
    async def quick() -> str:
        await slow_began.wait()
        return "quick"

    run = agent(asks(call("slow", "c1"), call("quick", "c2")), tools=[slow, quick])
    execution = run.execution("go")
    commit = run.sink.commit

    async def watched(*drafts: Any) -> bool:
        stored = await commit(*drafts)
        if any(draft.type == "tool.completed" for draft in drafts):
            quick_told.set()
        return stored

    run.sink.commit = watched
    work = asyncio.create_task(execution.run())
    await asyncio.wait_for(quick_told.wait(), 5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert told_stop.is_set()
    assert [(e["callId"], e["status"]) for e in run.sink.of("tool.completed")] == [("c2", "completed")]
    results = closed(execution)
    assert (results["c2"], results["c1"].startswith("Cancelled: the run was stopped while")) == ("quick", True)
    assert execution.progress.acted


async def test_a_result_that_comes_in_the_moment_in_which_a_guard_fails_the_run_is_kept_and_told() -> None:
    @tool
    async def quick() -> str:
        return "quick"

    ended = asyncio.Event()

    async def guard(context: Context, call_next: CallNext) -> None:
        if context.call_id == "c1":
            await ended.wait()
            raise MiddlewareFailure("no")
        await call_next()
        ended.set()

    plan = plan_of(tools=[quick], middleware=[function_middleware(guard)])
    run = AgentRun(FakeClient(asks(call("quick", "c1"), call("quick", "c2"))), plan=plan)
    execution = run.execution("go")
    with pytest.raises(MiddlewareFailed):
        await execution.run()

    assert [(e["callId"], e["status"]) for e in run.sink.of("tool.completed")] == [("c2", "completed")]
    assert closed(execution)["c2"] == "quick"


async def test_a_sync_tool_of_a_stopped_run_is_left_behind_and_its_late_words_are_not_heard(
    release: threading.Event,
) -> None:
    began, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool
    def block(ctx: Context) -> str:
        loop.call_soon_threadsafe(began.set)
        release.wait()
        ctx.progress("late")
        ended.set()
        return "late"

    run = agent(asks(call("block", "c1")), tools=[block])
    execution = await stopped(run, began)
    release.set()
    assert await asyncio.to_thread(ended.wait, 5)
    await asyncio.sleep(0)

    assert closed(execution)["c1"].startswith("Cancelled")
    assert run.sink.of("tool.delta", "tool.completed") == []


async def test_a_tool_that_ignores_that_it_is_stopped_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.agents.tool_batch.ABANDON_AFTER_S", 0.02)
    began, let_go = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        began.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    execution = await stopped(agent(asks(call("stubborn", "c1")), tools=[stubborn]), began)
    let_go.set()

    assert closed(execution)["c1"].startswith("Cancelled")


# ---- what ends other things ------------------------------------------------------------------------------------------


async def test_a_tool_past_its_time_gets_an_error_result_and_its_siblings_are_not_hurt() -> None:
    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    @tool
    async def quick() -> str:
        return "quick"

    execution = await agent(asks("hang", "quick"), tools=[hang, quick], tool_timeout_ms=20).say("go")

    assert told(execution) == ["Error: Tool 'hang' did not end within 0.02 s.", "quick"]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit(), StopIteration(1)]
)
async def test_a_tool_that_would_end_the_process_only_ends_its_call(is_async: bool, error: BaseException) -> None:
    def leave() -> None:
        raise error

    async def leave_async() -> None:
        raise error

    made = tool(leave_async if is_async else leave, name="leave")

    assert await one_result(made) == (FAILED_TEXT, True)


async def test_exit_in_a_tool_only_ends_its_call() -> None:
    assert await one_result(tool(lambda: sys.exit(1), name="leave")) == (FAILED_TEXT, True)


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(1), ValueError("secret")])
async def test_a_result_parser_that_fails_only_fails_its_call(error: BaseException) -> None:
    def parse(_value: Any) -> Any:
        raise error

    assert await one_result(tool(lambda: "x", name="act", result_parser=parse)) == (FAILED_TEXT, True)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("half \ud83d of a pair, and \0"), "Error: half \ufffd of a pair, and \ufffd"),
        (Unspeakable(), FAILED_TEXT),
        (ToolError(), "Error: "),
    ],
)
async def test_what_an_error_says_is_sent_as_far_as_it_can_be_sent(error: Exception, text: str) -> None:
    @tool
    async def complain() -> None:
        raise error

    assert await one_result(complain) == (text, True)


# ---- odd values ------------------------------------------------------------------------------------------------------


class Odd:
    def to_dict(self) -> dict[str, Any]:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (b"\xff", "\ufffd"),
        (float("nan"), "null"),
        ("\ud83d", "\ufffd"),
        (Odd(), "a Odd"),
        (cyclic(), "[[...]]"),
        ({1: {2}}, '{"1": [2]}'),
    ],
    ids=["none", "bytes", "nan", "surrogate", "unspeakable", "cyclic", "set"],
)
async def test_an_odd_value_is_shown_as_far_as_it_can_be_shown(value: Any, text: str) -> None:
    assert await one_result(tool(lambda: value, name="act")) == (text, False)


async def test_a_call_that_a_tool_returns_is_data_and_is_not_made() -> None:
    asked = call("act", "c9")

    text, is_error = await one_result(tool(lambda: [asked], name="act"))

    assert (is_error, "c9" in text) == (False, True)


async def test_a_large_value_is_turned_into_text_beside_the_loop_and_cut() -> None:
    threads: list[threading.Thread] = []

    class Large:
        def to_dict(self) -> list[int]:
            threads.append(threading.current_thread())
            return list(range(100_000))

    text, is_error = await one_result(tool(lambda: Large(), name="act"), tool_result_bytes=1024)

    assert threads != [threading.main_thread()]
    assert (is_error, len(text) < 1100, text.startswith("[0, 1,")) == (False, True, True)


# ---- progress --------------------------------------------------------------------------------------------------------


async def test_what_a_tool_tells_while_it_works_is_sent_on_before_its_end() -> None:
    @tool
    async def count(ctx: Context) -> str:
        ctx.progress("one ")
        ctx.progress("two")
        return "ok"

    run = agent(asks(call("count", "c1")), tools=[count])
    await run.say("go")

    kinds = [kind for kind, _ in run.sink.events]
    assert run.sink.of("tool.delta") == [{"callId": "c1", "text": "one two"}]
    assert kinds.index("tool.delta") < kinds.index("tool.completed")


async def test_a_flood_of_progress_is_cut_and_says_by_how_much() -> None:
    @tool
    async def flood(ctx: Context) -> str:
        for _ in range(1000):
            ctx.progress("x" * 1000)
        return "ok"

    run = agent(asks("flood"), tools=[flood])
    await run.say("go")

    [delta] = run.sink.of("tool.delta")
    assert delta["text"] == "x" * MOST_WAITING + f"\n[{1_000_000 - MOST_WAITING} characters left out]\n"


async def test_progress_waits_while_the_host_is_far_behind_and_comes_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_progress, "AGAIN_AFTER_S", 0.001)
    sink = FakeSink()
    pipe = ToolProgress(sink, "c1")
    sent: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(sink, "ephemeral", lambda _event, data: sent.set_result(data["text"]))

    pipe.write("waits")
    done, _ = await asyncio.wait({sent}, timeout=0.02)
    assert not done
    monkeypatch.setattr(sink, "congested", False)

    assert await asyncio.wait_for(sent, 5) == "waits"


@pytest.mark.parametrize("wrong", [b"bytes", 3, None])
async def test_progress_that_is_no_text_is_the_tool_s_own_error(wrong: Any) -> None:
    @tool
    async def act(ctx: Context) -> None:
        ctx.progress(wrong)

    assert await one_result(act) == (FAILED_TEXT, True)


async def test_half_a_character_in_progress_is_replaced() -> None:
    @tool
    async def act(ctx: Context) -> None:
        ctx.progress("\ud83d")

    run = agent(asks("act"), tools=[act])
    await run.say("go")

    assert [delta["text"] for delta in run.sink.of("tool.delta")] == ["\ufffd"]


async def test_a_result_stands_for_exactly_one_call_even_if_a_model_gives_two_calls_one_id() -> None:
    same = tool(lambda: "ran", name="same")
    run = agent(asks(call("same", "c1"), call("same", "c1")), tools=[same])
    execution = await run.say("go")

    blocks = [block for message in run.client.requests[1].messages for block in message.content]
    assert sum(isinstance(block, FunctionResultBlock) for block in blocks) == 2
    assert told(execution) == ["ran", "ran"]
