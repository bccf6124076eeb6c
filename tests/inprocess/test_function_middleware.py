"""Middleware around tool calls: what it may change, leave out or end, and that a guard never fails open."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import (
    CallNext,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
    function_middleware,
)
from providers.api.ports import ChatRequest
from providers.api.tool import tool
from providers.api.tool_result import ToolResult
from sidecar.agents.plan import DEFAULT_LIMITS
from sidecar.agents.tool_call import FAILED_TEXT, LEFT_OUT_TEXT
from sidecar.config.limits import Limits
from sidecar.errors import MiddlewareFailed, ModelUnavailable
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, says
from tests.bench.tool_calls import asks, call, result_blocks, told

Context = FunctionInvocationContext
Process = Callable[[Context, CallNext], Awaitable[None]]
SECRET = "db password=hunter2"
QUICK = Limits(middleware_timeout_ms=20)


class Shop:
    """A tool that keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @tool
    async def delete_all(self, table: str = "orders") -> str:
        self.calls.append(table)
        return f"deleted {table}"


def agent(shop: Shop, *guards: Process, answers: Any = (), limits: Limits = DEFAULT_LIMITS) -> AgentRun:
    answers = answers or (asks(call("delete_all", "c1")), says("done"))
    plan = plan_of(tools=[shop.delete_all], middleware=[function_middleware(g) for g in guards], limits=limits)
    return AgentRun(FakeClient(*answers), plan=plan)


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def forever() -> None:
    await asyncio.Event().wait()


# ---- a guard that fails ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_guard_that_fails_the_run_lets_nothing_more_happen(shop: Shop, is_streaming: bool) -> None:
    """BR-23 (a)."""

    async def guard(_context: Context, _call_next: CallNext) -> None:
        raise MiddlewareFailure("orders may not be deleted")

    run = agent(shop, guard)
    with pytest.raises(MiddlewareFailed) as caught:
        await run.say("go", is_streaming=is_streaming)

    assert (caught.value.kind, caught.value.fields["tool"]) == ("middlewareFailed", "delete_all")
    assert "orders may not be deleted" in caught.value.message
    assert (shop.calls, len(run.client.requests)) == ([], 1)


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_guard_that_raises_keeps_the_tool_from_running_and_its_words_to_itself(
    shop: Shop, is_streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """BR-23 (b)."""

    async def guard(_context: Context, _call_next: CallNext) -> None:
        raise ValueError(SECRET)

    run = agent(shop, guard)
    execution = await run.say("go", is_streaming=is_streaming)

    assert (told(execution), shop.calls) == ([FAILED_TEXT], [])
    everything = [run.sink.events, run.sink.warnings, run.client.requests, execution.progress.messages, caplog.text]
    assert "hunter2" not in str(everything)
    assert "delete_all" in caplog.text


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_guard_that_never_calls_next_and_gives_no_result_holds_the_call_back(
    shop: Shop, is_streaming: bool
) -> None:
    """BR-23 (c)."""

    async def guard(_context: Context, _call_next: CallNext) -> None:
        return

    execution = await agent(shop, guard).say("go", is_streaming=is_streaming)

    [block] = result_blocks(execution.progress.messages)
    assert (told(execution), block.is_error, shop.calls) == ([LEFT_OUT_TEXT], True, [])


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_guard_that_hangs_past_its_limit_keeps_the_tool_from_running(shop: Shop, is_streaming: bool) -> None:
    """BR-23 (d)."""

    async def guard(_context: Context, call_next: CallNext) -> None:
        await forever()
        await call_next()

    execution = await agent(shop, guard, limits=QUICK).say("go", is_streaming=is_streaming)

    assert told(execution) == ["Error: The middleware around this call took too long; it was not run."]
    assert shop.calls == []


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_the_tool_sees_changed_arguments_and_the_events_show_both(shop: Shop, is_streaming: bool) -> None:
    """BR-23 (e)."""

    async def guard(context: Context, call_next: CallNext) -> None:
        context.arguments["table"] = "drafts"
        await call_next()

    run = agent(shop, guard)
    execution = await run.say("go", is_streaming=is_streaming)

    assert shop.calls == ["drafts"]
    assert [event["arguments"] for event in run.sink.of("tool.started")] == [{}, {"table": "drafts"}]
    [asked] = [block for block in execution.progress.messages[0].content if block.type == "functionCall"]
    assert asked == call("delete_all", "c1")


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_guard_that_raises_behind_the_call_has_let_the_tool_run_once_and_not_again(
    shop: Shop, is_streaming: bool
) -> None:
    """BR-23 (f)."""

    async def guard(_context: Context, call_next: CallNext) -> None:
        await call_next()
        raise ValueError(SECRET)

    execution = await agent(shop, guard).say("go", is_streaming=is_streaming)

    assert (told(execution), shop.calls) == ([FAILED_TEXT], ["orders"])


async def test_a_guard_that_hangs_behind_the_call_is_told_as_an_unknown_outcome(shop: Shop) -> None:
    async def guard(_context: Context, call_next: CallNext) -> None:
        await call_next()
        await forever()

    execution = await agent(shop, guard, limits=QUICK).say("go")

    assert told(execution) == ["Error: The middleware around this call took too long; its outcome is not known."]
    assert shop.calls == ["orders"]


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError()])
async def test_a_guard_that_would_end_the_process_or_the_run_only_fails_its_call(
    shop: Shop, error: BaseException
) -> None:
    async def guard(_context: Context, _call_next: CallNext) -> None:
        raise error

    execution = await agent(shop, guard).say("go")

    assert (told(execution), shop.calls, execution.progress.text) == ([FAILED_TEXT], [], "done")


async def test_a_guard_whose_own_model_call_fails_only_fails_its_call(shop: Shop) -> None:
    async def guard(context: Context, call_next: CallNext) -> None:
        async for _ in context.run.agent.chat_client().stream(ChatRequest(messages=())):
            pass
        await call_next()

    answers = [asks("delete_all"), [ModelUnavailable("the guard's model is down")], says("done")]
    execution = await agent(shop, guard, answers=answers).say("go")

    assert (told(execution), shop.calls) == ([FAILED_TEXT], [])


async def test_a_failing_guard_stops_the_calls_beside_it_and_keeps_the_results_that_are_there() -> None:
    reached, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        try:
            reached.set()
            await forever()
        finally:
            stopped.set()

    @tool
    async def quick() -> str:
        return "quick"

    async def guard(context: Context, call_next: CallNext) -> None:
        if context.function.name == "gated":
            await reached.wait()
            raise MiddlewareFailure("no")
        await call_next()

    gated = tool(lambda: "ran", name="gated")
    plan = plan_of(tools=[slow, quick, gated], middleware=[function_middleware(guard)])
    answer = asks(call("slow", "c1"), call("quick", "c2"), call("gated", "c3"))
    run = AgentRun(FakeClient(answer), plan=plan)
    execution = run.execution("go")
    with pytest.raises(MiddlewareFailed):
        await execution.run()
    await run.sink.commit()

    assert stopped.is_set()
    assert [(e["callId"], e["status"]) for e in run.sink.of("tool.completed")] == [("c2", "completed")]
    assert {call_id: block is not None for call_id, block in execution.progress.batch.items()} == {
        "c1": False,
        "c2": True,
        "c3": False,
    }


# ---- results ---------------------------------------------------------------------------------------------------------


async def test_a_result_without_the_call_is_used_and_the_loop_goes_on(shop: Shop) -> None:
    """Case 44."""

    async def cached(context: Context, _call_next: CallNext) -> None:
        context.result = {"cached": True}

    run = agent(shop, cached)
    execution = await run.say("go")

    assert (told(execution), shop.calls, execution.progress.text) == (['{"cached": true}'], [], "done")
    assert result_blocks(execution.progress.messages)[0].structured_content == {"cached": True}


@pytest.mark.parametrize(
    ("termination", "result"),
    [
        (MiddlewareTermination(result="from the exception"), "from the exception"),
        (MiddlewareTermination(), "from the context"),
    ],
)
async def test_a_termination_gives_the_result_and_ends_the_loop(
    shop: Shop, termination: MiddlewareTermination, result: str
) -> None:
    """Case 44."""

    async def end(context: Context, _call_next: CallNext) -> None:
        context.result = "from the context"
        raise termination

    run = agent(shop, end)
    execution = await run.say("go")

    assert (told(execution), shop.calls, len(run.client.requests)) == ([result], [], 1)
    assert execution.progress.stop_reason == "endTurn"


async def test_a_termination_behind_the_call_keeps_the_tool_s_result(shop: Shop) -> None:
    """Case 44."""

    async def end(_context: Context, call_next: CallNext) -> None:
        await call_next()
        raise MiddlewareTermination

    execution = await agent(shop, end).say("go")

    assert told(execution) == ["deleted orders"]


async def test_a_termination_without_any_result_is_told_as_held_back(shop: Shop) -> None:
    """Case 44."""

    async def end(_context: Context, _call_next: CallNext) -> None:
        raise MiddlewareTermination

    execution = await agent(shop, end).say("go")

    assert (told(execution), shop.calls) == ([LEFT_OUT_TEXT], [])


async def test_the_calls_beside_a_termination_end_with_their_results(shop: Shop) -> None:
    async def end(context: Context, call_next: CallNext) -> None:
        if context.call_id == "c1":
            raise MiddlewareTermination(result="ended")
        await call_next()

    answers = [asks(call("delete_all", "c1"), call("delete_all", "c2"))]
    execution = await agent(shop, end, answers=answers).say("go")

    assert told(execution) == ["ended", "deleted orders"]


async def test_what_the_tool_returned_can_be_replaced(shop: Shop) -> None:
    async def redact(context: Context, call_next: CallNext) -> None:
        await call_next()
        context.result = str(context.result).replace("orders", "***")

    assert told(await agent(shop, redact).say("go")) == ["deleted ***"]


async def test_middleware_may_say_that_a_call_failed(shop: Shop) -> None:
    async def deny(context: Context, _call_next: CallNext) -> None:
        context.result = ToolResult((), is_error=True)

    execution = await agent(shop, deny).say("go")

    assert result_blocks(execution.progress.messages)[0].is_error


async def test_calling_next_again_does_not_run_the_tool_again(shop: Shop) -> None:
    async def twice(_context: Context, call_next: CallNext) -> None:
        await call_next()
        await call_next()

    execution = await agent(shop, twice).say("go")

    assert (told(execution), shop.calls) == ([FAILED_TEXT], ["orders"])


async def test_the_tool_s_own_time_is_not_the_middleware_s() -> None:
    @tool
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "slow"

    class Through(FunctionMiddleware):
        async def process(self, context: Context, call_next: CallNext) -> None:
            await call_next()

    plan = plan_of(tools=[slow], middleware=[Through()], limits=QUICK)
    execution = await AgentRun(FakeClient(asks("slow"), says("ok")), plan=plan).say("go")

    assert told(execution) == ["slow"]


async def test_a_tool_s_error_can_be_caught_and_answered_otherwise() -> None:
    @tool
    async def crash() -> None:
        raise KeyError(SECRET)

    async def mild(context: Context, call_next: CallNext) -> None:
        try:
            await call_next()
        except KeyError:
            context.result = "nothing found"

    plan = plan_of(tools=[crash], middleware=[function_middleware(mild)])
    execution = await AgentRun(FakeClient(asks("crash"), says("ok")), plan=plan).say("go")

    assert told(execution) == ["nothing found"]


@pytest.mark.parametrize("wrong", [{"table": object()}, {1: "x"}, {"table": float("nan")}, None])
async def test_arguments_that_are_no_json_any_more_fail_the_call_and_nothing_else(shop: Shop, wrong: Any) -> None:
    async def spoil(context: Context, call_next: CallNext) -> None:
        context.arguments = wrong
        await call_next()

    execution = await agent(shop, spoil).say("go")

    assert (shop.calls, execution.progress.text) == ([], "done")
    assert told(execution)[0].startswith("Error: ")
