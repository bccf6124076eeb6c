"""The loop of model calls and tool calls: results, limits, order, choice of tools, structured output."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import Message
from providers.api.invocation import FunctionInvocationContext
from providers.api.ports import Finished, ModelTraits, TextDelta
from providers.api.tool import ToolError, tool, tool_from_schema
from sidecar.agents.loop import LIMIT_TEXT
from sidecar.agents.tool_call import ARGUMENTS_TEXT, FAILED_TEXT, NOT_STORED_TEXT
from sidecar.config.limits import Limits
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, Hang, Step, says
from tests.bench.providers import Hook, Log, Recorder
from tests.bench.tool_calls import asks, call, result_blocks, told

Context = FunctionInvocationContext


@tool
async def echo(text: str = "echo") -> str:
    return text


@tool
async def fail() -> str:
    raise KeyError("hunter2")


def roles(messages: "list[Message]") -> list[str]:
    return [message.role for message in messages]


def agent(*answers: list[Step], tools: Any = (echo, fail), limits: Limits | None = None, **spec: Any) -> AgentRun:
    return AgentRun(FakeClient(*answers), plan=plan_of(tools=tools, limits=limits or Limits(), **spec))


# ---- results ---------------------------------------------------------------------------------------------------------


async def test_a_call_is_run_and_its_result_is_what_the_next_model_call_sees() -> None:
    run = agent(asks(call("echo", "c1", text="hi")), says("done"))

    execution = await run.say("go")

    assert roles(execution.progress.messages) == ["assistant", "tool", "assistant"]
    assert told(execution) == ["hi"]
    assert list(run.client.requests[1].messages)[1:] == execution.progress.messages[:2]
    assert execution.progress.text == "done"
    assert execution.progress.acted


async def test_a_call_is_told_to_have_begun_before_it_runs_and_with_its_result_after() -> None:
    seen: list[list[str]] = []

    @tool
    async def look() -> list[int]:
        seen.append([kind for kind, _ in run.sink.events])
        return [1, 2]

    run = agent(asks(call("look", "c1")), says("done"), tools=[look])
    await run.say("go")

    assert seen == [["message.completed", "tool.started"]]
    kinds = [kind for kind, _ in run.sink.events]
    assert kinds[:4] == ["message.completed", "tool.started", "tool.completed", "message.completed"]
    [started], [ended] = run.sink.of("tool.started"), run.sink.of("tool.completed")
    assert started == {"callId": "c1", "name": "look", "arguments": {}, "status": "running"}
    assert (ended["status"], ended["structuredContent"], ended["content"]) == (
        "completed",
        [1, 2],
        [{"type": "text", "text": "[1, 2]"}],
    )


@pytest.mark.parametrize("detailed", [False, True])
async def test_failed_and_misfit_and_unknown_calls_get_their_fixed_results_and_the_run_goes_on(detailed: bool) -> None:
    """Case 36."""
    run = agent(asks("fail", call("echo", text=3), "rm"), says("sorry"))
    run.plan = replace(run.plan, detailed_tool_errors=detailed)

    execution = await run.say("go")

    first, second, third = told(execution)
    assert (first, third) == (
        "Error: Function failed. Exception: 'hunter2'" if detailed else "Error: Function failed.",
        'Error: Requested function "rm" not found.',
    )
    assert second.startswith("Error: Argument parsing failed.")
    assert (second == ARGUMENTS_TEXT) is not detailed
    assert all(block.is_error for block in result_blocks(execution.progress.messages))
    assert execution.progress.text == "sorry"


async def test_a_tool_s_own_error_is_told_in_its_own_words() -> None:
    @tool
    async def refuse() -> None:
        raise ToolError("the shop is closed")

    execution = await agent(asks("refuse"), says("ok"), tools=[refuse]).say("go")

    assert told(execution) == ["Error: the shop is closed"]


async def test_calls_overlap_in_time_and_their_results_keep_the_order_of_the_calls() -> None:
    """Case 39."""
    second_ran = asyncio.Event()

    @tool
    async def first() -> str:
        await asyncio.wait_for(second_ran.wait(), 5)
        return "first"

    @tool
    async def second() -> str:
        second_ran.set()
        return "second"

    run = agent(asks(call("first", "c1"), call("second", "c2")), says("done"), tools=[first, second])
    execution = await run.say("go")

    [message] = [message for message in execution.progress.messages if message.role == "tool"]
    assert [block.call_id for block in result_blocks([message])] == ["c1", "c2"]
    assert told(execution) == ["first", "second"]
    assert [event["callId"] for event in run.sink.of("tool.completed")] == ["c2", "c1"]


async def test_sync_tools_overlap_too() -> None:
    """Case 39."""
    both = threading.Barrier(2, timeout=5)

    @tool
    def meet() -> int:
        return int(both.wait() >= 0)

    assert told(await agent(asks("meet", "meet"), says("done"), tools=[meet]).say("go")) == ["1", "1"]


async def test_two_calls_of_one_tool_are_two_calls_with_their_own_arguments() -> None:
    """BR-13: what the model's client has told apart stays apart."""
    asked = asks(call("echo", "call_a", text="meat"), call("echo", "call_b", text="veg"))
    execution = await agent(asked, says("ok")).say("go")

    results = result_blocks(execution.progress.messages)
    assert [block.call_id for block in results] == ["call_a", "call_b"]
    assert told(execution) == ["meat", "veg"]


async def test_arguments_that_are_no_json_object_are_not_run() -> None:
    """BR-13."""
    broken = call("echo", "c1").model_copy(update={"raw_arguments": '{"text": "a'})
    run = agent(asks(broken), says("ok"))
    execution = await run.say("go")

    assert told(execution) == [ARGUMENTS_TEXT]
    assert echo_started(run) == []


def echo_started(run: AgentRun) -> list[str]:
    return [event["callId"] for event in run.sink.of("tool.started")]


@pytest.mark.parametrize("arguments", [{"text": "x"}, {}])
async def test_calls_of_an_answer_that_was_cut_off_are_not_run(arguments: dict[str, Any]) -> None:
    """BR-15: neither broken calls nor those that are valid by luck."""
    run = agent(asks(call("echo", "c1", **arguments), reason="length"), says("ok"))
    execution = await run.say("go")

    assert "Send it again" in told(execution)[0]
    assert echo_started(run) == []
    assert not execution.progress.acted


async def test_a_text_that_was_cut_off_ends_the_run_with_that_reason() -> None:
    """BR-15."""
    execution = await agent(says("half a sen", reason="length")).say("go")

    assert execution.progress.stop_reason == "maxTokens"


# ---- limits ----------------------------------------------------------------------------------------------------------


async def test_after_three_failing_rounds_a_fourth_call_has_tools_off_and_the_run_ends_in_text() -> None:
    """Case 37."""
    run = agent(asks("fail"), asks("fail"), asks("fail"), says("I give up."))

    execution = await run.say("go")

    choices = [request.options.tool_choice for request in run.client.requests]
    assert choices == [None, None, None, "none"]
    assert (execution.progress.text, execution.progress.stop_reason) == ("I give up.", "endTurn")


async def test_a_round_in_which_one_call_succeeds_is_no_failing_round() -> None:
    """Case 37."""
    run = agent(asks("fail"), asks("fail"), asks("fail", "echo"), asks("fail"), asks("fail"), says("done"))

    await run.say("go")

    assert [request.options.tool_choice for request in run.client.requests] == [None] * 6


async def test_an_endless_caller_ends_at_the_cap_with_the_fallback_text() -> None:
    """Case 38."""
    run = agent(asks("echo"), asks("echo"), asks("echo"), asks("echo"), maxTurns=3)

    execution = await run.say("go")

    assert len(run.client.requests) == 4
    assert (execution.progress.messages[-1].text, execution.progress.stop_reason) == (LIMIT_TEXT, "maxTurns")
    assert len(told(execution)) == 3


async def test_a_result_over_the_limit_is_cut_with_a_note() -> None:
    execution = await agent(asks(call("echo", text="x" * 5000)), says("ok"), limits=Limits(tool_result_bytes=1024)).say(
        "go"
    )

    assert told(execution) == ["x" * 1024 + "\n[3976 more characters were left out]"]


async def test_an_error_over_the_limit_is_cut_with_a_note() -> None:
    @tool
    async def complain() -> None:
        raise ToolError("x" * 5000)

    run = agent(asks("complain"), says("ok"), tools=[complain], limits=Limits(tool_result_bytes=1024))
    [text] = told(await run.say("go"))

    assert (len(text) < 1100, text.endswith("more characters were left out]")) == (True, True)


async def test_a_tool_that_may_be_called_twice_is_called_twice() -> None:
    @tool(max_invocations=2)
    async def count() -> str:
        return "ran"

    execution = await agent(asks("count"), asks("count"), asks("count"), says("ok"), tools=[count]).say("go")

    assert told(execution)[:2] == ["ran", "ran"]
    assert "cannot be called again" in told(execution)[2]
    assert count.invocations == 2


async def test_a_tool_that_may_fail_twice_is_called_twice() -> None:
    @tool(max_invocation_exceptions=2)
    async def crash() -> str:
        raise KeyError

    rounds = [asks("crash", "echo") for _ in range(3)]
    execution = await agent(*rounds, says("ok"), tools=[crash, echo]).say("go")

    assert told(execution)[0::2][:2] == [FAILED_TEXT, FAILED_TEXT]
    assert "failed 2 times" in told(execution)[4]


# ---- what the model may call -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", {"name": "echo"}])
async def test_a_choice_that_forces_a_call_counts_for_the_first_model_call_only(choice: Any) -> None:
    run = agent(asks("echo"), says("done"))

    await run.say("go", options=RunOptions(tool_choice=choice))

    first, second = (request.options.tool_choice for request in run.client.requests)
    assert (first, second) == (RunOptions(tool_choice=choice).tool_choice, None)


async def test_a_choice_that_forces_nothing_counts_for_every_model_call() -> None:
    run = agent(asks("echo"), says("done"))

    await run.say("go", options=RunOptions(tool_choice="auto"))

    assert [request.options.tool_choice for request in run.client.requests] == ["auto", "auto"]


async def test_a_hosted_tool_that_the_service_does_not_have_is_left_out_with_a_warning() -> None:
    search = tool_from_schema(None, name="search", description="", hosted="web_search")
    run = agent(says("done"), tools=[search, echo])

    await run.say("go")

    assert [spec.name for spec in run.client.requests[0].tools] == ["echo"]
    [(kind, message, _)] = run.sink.warnings
    assert kind == "toolNotOffered"
    assert "search" in message


async def test_a_hosted_tool_is_named_to_a_service_that_has_it_and_never_called_here() -> None:
    class Searching(FakeClient):
        @property
        def traits(self) -> ModelTraits:
            return ModelTraits(hosted_tools=frozenset({"web_search"}))

    search = tool_from_schema(None, name="search", description="", hosted="web_search")
    run = AgentRun(Searching(asks("search"), says("done")), plan=plan_of(tools=[search]))
    execution = await run.say("go")

    assert [spec.hosted for spec in run.client.requests[0].tools] == ["web_search"]
    assert told(execution) == ['Error: Requested function "search" not found.']


async def test_a_call_of_a_declared_tool_is_left_to_the_host_and_its_siblings_run() -> None:
    pick = tool_from_schema(None, name="pick", description="")
    run = agent(asks(call("pick", "c1"), call("echo", "c2")), tools=[pick, echo])

    execution = await run.say("go")

    assert execution.progress.stop_reason == "inputRequired"
    assert [block.call_id for block in result_blocks(execution.progress.messages)] == ["c2"]


# ---- storage ---------------------------------------------------------------------------------------------------------


async def test_a_call_whose_intent_cannot_be_stored_does_not_run() -> None:
    ran: list[int] = []

    @tool
    async def act() -> None:
        ran.append(1)

    run = agent(asks("act"), says("ok"), tools=[act])
    execution = run.execution("go")
    run.sink.can_store = False
    await execution.run()

    assert ran == []
    assert told(execution) == [NOT_STORED_TEXT]
    assert not execution.progress.acted


# ---- streams and values ----------------------------------------------------------------------------------------------


async def test_a_run_with_a_tool_calls_the_hooks_after_it_once() -> None:
    """Case 45."""
    log = Log()
    seen: list[int] = []

    def after(hook: Hook) -> None:
        assert hook.context.response is not None
        seen.append(len(hook.context.response.messages))

    run = agent(asks("echo"), says("done"))
    run = AgentRun(run.client, [Recorder("p", log, after=after)], plan=run.plan)
    await run.say("go")

    assert (log.lines, seen) == (["before:p", "after:p"], [3])


async def test_a_run_that_is_stopped_mid_stream_hands_its_text_to_the_failure_hooks() -> None:
    """Case 45."""
    log, hang = Log(), Hang()
    run = AgentRun(FakeClient([TextDelta("half "), TextDelta("a"), hang]), [Recorder("p", log)])
    execution = run.execution("go")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await execution.failed(RuntimeError("stopped"))

    assert log.lines == ["before:p", "failed:p"]
    assert log.errors[0][2] == "half a"
    assert execution.progress.messages == []


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_value_is_read_from_the_last_text_behind_a_tool_loop(is_streaming: bool) -> None:
    """Case 46."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    first: list[Step] = [TextDelta('{"n": 1}'), *asks(call("echo", text='{"n": 5}'))]
    run = agent(first, says('{"n": 2}'))

    progress = (await run.say("go", response_schema=schema, is_streaming=is_streaming)).progress

    assert (progress.value, progress.value_error) == ({"n": 2}, None)
    assert [request.response_schema for request in run.client.requests] == [schema, schema]


async def test_the_calls_of_an_answer_that_is_no_call_to_the_service_still_run() -> None:
    run = agent([*asks("echo")[:-1], Finished("stop")], says("ok"))

    assert told(await run.say("go")) == ["echo"]
