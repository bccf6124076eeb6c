"""Middleware around a whole run: the order of everything, what it may change, answer instead, or fail."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import FunctionCallBlock, Message, Source, text_message
from providers.api.context import Response
from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import (
    AgentContext,
    AgentMiddleware,
    CallNext,
    ChatContext,
    MiddlewareFailure,
    MiddlewareTermination,
    agent_middleware,
)
from providers.api.tool import tool
from sidecar.agents.parts import BoundMiddleware
from sidecar.agents.plan import DEFAULT_LIMITS
from sidecar.config.limits import Limits
from sidecar.errors import MiddlewareFailed, ModelUnavailable, ProviderFailed
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, Hang, says
from tests.bench.providers import Hook, Log, Recorder, fails
from tests.bench.tool_calls import asks, result_blocks

Process = Callable[[AgentContext, CallNext], Awaitable[None]]
QUICK = Limits(middleware_timeout_ms=20)


@tool
async def echo() -> str:
    return "echo"


def agent(*around: Process, answers: Any = (), log: Log | None = None, limits: Limits = DEFAULT_LIMITS) -> AgentRun:
    plan = plan_of(tools=[echo], middleware=[agent_middleware(process) for process in around], limits=limits)
    providers = [Recorder("p", log)] if log is not None else []
    return AgentRun(FakeClient(*(answers or (says("the model"),))), providers, plan=plan)


def texts(messages: "list[Message]") -> list[str]:
    return [message.text for message in messages]


# ---- order -----------------------------------------------------------------------------------------------------------


async def test_everything_around_two_model_calls_and_a_tool_comes_in_the_one_order() -> None:
    """Cases 2 and 9."""
    log = Log()

    def noted(name: str, context_type: type) -> Any:
        async def process(context: Any, call_next: CallNext) -> None:
            log.lines.append(f"{name}>")
            await call_next()
            log.lines.append(f"<{name}")

        process.__annotations__["context"] = context_type
        return process

    def before(hook: Hook, name: str) -> None:
        chat, function = noted(f"c-{name}", ChatContext), noted(f"f-{name}", FunctionInvocationContext)
        hook.context.extend_middleware(name, [function, chat])

    @tool
    async def act() -> None:
        log.lines.append("act")

    own = [noted("F1", FunctionInvocationContext), noted("C1", ChatContext), noted("A1", AgentContext)]
    run_level = (
        BoundMiddleware("A2", "agent", noted("A2", AgentContext)),
        BoundMiddleware("C2", "chat", noted("C2", ChatContext)),
        BoundMiddleware("F2", "function", noted("F2", FunctionInvocationContext)),
    )
    providers = [Recorder(name, log, before=lambda hook, name=name: before(hook, name)) for name in ("p1", "p2")]
    run = AgentRun(FakeClient(asks("act"), says("done")), providers, plan=plan_of(tools=[act], middleware=own))
    await run.say("go", middleware=run_level)

    chat = "C1> C2> c-p1> c-p2> <c-p2 <c-p1 <C2 <C1"
    function = "F1> F2> f-p1> f-p2> act <f-p2 <f-p1 <F2 <F1"
    assert " ".join(log.lines) == (f"A1> A2> before:p1 before:p2 {chat} {function} {chat} after:p2 after:p1 <A2 <A1")


async def test_a_provider_cannot_stand_around_the_run_that_it_is_part_of() -> None:
    """Case 10."""

    async def around(context: AgentContext, call_next: CallNext) -> None:
        await call_next()

    run = AgentRun(
        FakeClient(), [Recorder("p", Log(), before=lambda hook: hook.context.extend_middleware("p", around))]
    )
    with pytest.raises(ProviderFailed):
        await run.say("go")


# ---- what it may change ----------------------------------------------------------------------------------------------


async def test_what_it_changes_before_the_run_is_what_the_run_works_with() -> None:
    async def change(context: AgentContext, call_next: CallNext) -> None:
        context.messages = [text_message("user", f"{context.messages[0].text}, please")]
        context.options = RunOptions(temperature=0.5)
        context.client_kwargs["extra"] = context.properties["tenant"]
        await call_next()
        assert context.result is not None
        assert context.result.text == "the model"

    run = agent(change)
    await run.say("go", properties={"tenant": "t1"})

    [request] = run.client.requests
    assert texts(list(request.messages)) == ["go, please"]
    assert (request.options.temperature, request.client_kwargs) == (0.5, {"extra": "t1"})


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_it_is_told_whether_the_host_reads_a_stream(is_streaming: bool) -> None:
    seen: list[bool] = []

    class Watch(AgentMiddleware):
        async def process(self, context: AgentContext, call_next: CallNext) -> None:
            seen.append(context.is_streaming)
            await call_next()

    await AgentRun(FakeClient(says("ok")), plan=plan_of(middleware=[Watch()])).say("go", is_streaming=is_streaming)

    assert seen == [is_streaming]


# ---- another answer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streaming", [True, False])
@pytest.mark.parametrize("result", [Response((), "mine"), "mine"])
async def test_a_result_after_the_run_is_what_the_host_gets_and_the_transcript_keeps_both(
    result: Any, is_streaming: bool
) -> None:
    async def replace(context: AgentContext, call_next: CallNext) -> None:
        await call_next()
        context.result = result

    run = agent(replace)
    progress = (await run.say("go", is_streaming=is_streaming)).progress

    assert (progress.text, texts(progress.messages), texts(list(progress.answer))) == ("mine", ["the model"], ["mine"])
    [own, other] = [draft for commit in run.sink.commits for draft in commit if draft.type == "message.completed"]
    assert (own.in_history, other.in_history) == (True, False)
    assert progress.answer[0].source is not None
    assert progress.answer[0].source.type == "middleware"


async def test_a_result_instead_of_the_run_is_the_answer_and_nobody_else_is_called() -> None:
    async def cached(context: AgentContext, _call_next: CallNext) -> None:
        context.result = Response((), "cached")

    log = Log()
    run = agent(cached, log=log)
    progress = (await run.say("go")).progress

    assert (progress.text, log.lines, run.client.requests) == ("cached", [], [])
    assert progress.messages[0].source == Source(type="middleware", source_id=cached.__qualname__)
    assert progress.answered


async def test_a_response_is_answered_message_by_message_each_in_its_role() -> None:
    async def redact(context: AgentContext, call_next: CallNext) -> None:
        await call_next()
        assert context.result is not None
        context.result = Response(context.result.messages, context.result.text)

    progress = (await agent(redact, answers=[asks("echo"), says("done")]).say("go")).progress

    assert [message.role for message in progress.answer] == ["assistant", "tool", "assistant"]
    assert len(result_blocks(progress.answer)) == 1
    assert progress.text == "done"
    assert not {m.message_id for m in progress.answer} & {m.message_id for m in progress.messages}


async def test_leaving_the_run_out_without_an_answer_is_told() -> None:
    async def leave(_context: AgentContext, _call_next: CallNext) -> None:
        return

    run = agent(leave)
    execution = await run.say("go")

    assert ([kind for kind, _, _ in run.sink.warnings], execution.progress.text) == (["runLeftOut"], "")


@pytest.mark.parametrize(
    ("termination", "text"),
    [
        (MiddlewareTermination(result=Response((), "refused")), "refused"),
        (MiddlewareTermination(), "set before"),
    ],
)
async def test_a_termination_before_the_run_answers_with_its_result(
    termination: MiddlewareTermination, text: str
) -> None:
    async def end(context: AgentContext, _call_next: CallNext) -> None:
        context.result = Response((), "set before")
        raise termination

    run = agent(end)

    assert ((await run.say("go")).progress.text, run.client.requests) == (text, [])


async def test_a_termination_behind_the_run_keeps_its_answer() -> None:
    async def end(_context: AgentContext, call_next: CallNext) -> None:
        await call_next()
        raise MiddlewareTermination

    execution = await agent(end).say("go")

    assert (execution.progress.text, execution.progress.override) == ("the model", None)


async def test_a_value_is_read_from_what_middleware_answers() -> None:
    """Case 46."""

    async def replace(context: AgentContext, call_next: CallNext) -> None:
        await call_next()
        context.result = Response((), '{"n": 2}')

    execution = await agent(replace, answers=[says('{"n": 1}')]).say("go", response_schema={"type": "object"})

    assert execution.progress.value == {"n": 2}


# ---- failures --------------------------------------------------------------------------------------------------------


async def hanging(_context: AgentContext, call_next: CallNext) -> None:
    await asyncio.Event().wait()
    await call_next()


async def raising(_context: AgentContext, _call_next: CallNext) -> None:
    raise ValueError("db password=hunter2")


async def exiting(_context: AgentContext, _call_next: CallNext) -> None:
    raise SystemExit(2)


async def failing(_context: AgentContext, _call_next: CallNext) -> None:
    raise MiddlewareFailure("closed on Sundays")


async def answering_a_number(context: AgentContext, _call_next: CallNext) -> None:
    answer: Any = 3
    context.result = answer


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (hanging, "longer than 0.02 s"),
        (raising, "ValueError"),
        (exiting, "SystemExit"),
        (failing, "closed on Sundays"),
        (answering_a_number, "is a int"),
    ],
)
async def test_it_fails_the_run_by_name_and_nothing_is_called(process: Process, why: str) -> None:
    log = Log()
    run = agent(process, log=log, limits=QUICK)
    with pytest.raises(MiddlewareFailed, match=why) as caught:
        await run.say("go")

    assert "hunter2" not in caught.value.message
    assert (log.lines, run.client.requests) == ([], [])


async def test_calling_next_again_fails_the_run_and_nothing_is_done_twice() -> None:
    async def twice(_context: AgentContext, call_next: CallNext) -> None:
        await call_next()
        await call_next()

    run = agent(twice)
    with pytest.raises(MiddlewareFailed):
        await run.say("go")

    assert len(run.client.requests) == 1


async def test_the_run_s_own_failure_comes_through_it_as_it_is() -> None:
    async def through(_context: AgentContext, call_next: CallNext) -> None:
        await call_next()

    with pytest.raises(ModelUnavailable):
        await agent(through, answers=[[ModelUnavailable("down")]]).say("go")
    with pytest.raises(ProviderFailed):
        await AgentRun(
            FakeClient(), [Recorder("p", Log(), before=fails())], plan=plan_of(middleware=[agent_middleware(through)])
        ).say("go")


async def test_a_failed_run_can_be_answered_by_it() -> None:
    async def fallback(context: AgentContext, call_next: CallNext) -> None:
        try:
            await call_next()
        except ModelUnavailable:
            context.result = Response((), "try later")

    execution = await agent(fallback, answers=[[ModelUnavailable("down")]]).say("go")

    assert execution.progress.text == "try later"


async def test_the_run_s_own_time_is_not_the_middleware_s() -> None:
    @tool
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "slow"

    async def through(_context: AgentContext, call_next: CallNext) -> None:
        await call_next()

    plan = plan_of(tools=[slow], middleware=[agent_middleware(through)], limits=QUICK)

    assert (await AgentRun(FakeClient(asks("slow"), says("ok")), plan=plan).say("go")).progress.text == "ok"


async def test_a_stopped_run_is_stopped_although_it_swallows_that() -> None:
    async def swallow(_context: AgentContext, call_next: CallNext) -> None:
        with contextlib.suppress(BaseException):
            await call_next()

    hang = Hang()
    execution = agent(swallow, answers=[[hang]]).execution("go")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_calls_in_an_answer_of_its_own_are_made_by_nobody() -> None:
    async def invent(context: AgentContext, _call_next: CallNext) -> None:
        call = FunctionCallBlock(call_id="c", name="echo", arguments={})
        context.result = Response((Message(role="assistant", content=(call,)),), "")

    run = agent(invent)
    await run.say("go")

    assert run.sink.of("tool.started", "tool.completed") == []


async def test_a_value_is_read_from_what_middleware_answers_in_place_of_the_run() -> None:
    @agent_middleware
    async def instead(context: AgentContext, call_next: CallNext) -> None:
        context.result = Response((), '{"n": 2}')

    run = AgentRun(FakeClient(), plan=plan_of(middleware=[instead]))

    execution = await run.say("go", response_schema={"type": "object", "properties": {"n": {"type": "integer"}}})

    assert execution.progress.value == {"n": 2}
    assert execution.progress.value_error is None
