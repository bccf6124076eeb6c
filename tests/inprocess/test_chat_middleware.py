"""Middleware around model calls: what it may change, replace, hold back or end, and that it never fails open."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from protocol.messages import FunctionCallBlock, ReasoningBlock, Source, TextBlock, text_message
from providers.api.middleware import (
    CallNext,
    ChatContext,
    ChatMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
    chat_middleware,
)
from providers.api.ports import ChatAnswer, Finished, ModelTraits, ReasoningDelta, TextDelta
from providers.api.tool import tool
from sidecar.agents.plan import DEFAULT_LIMITS
from sidecar.config.limits import Limits
from sidecar.errors import MiddlewareFailed, ModelUnavailable
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, Hang, Step, says
from tests.bench.tool_calls import asks, call, told

Process = Callable[[ChatContext, CallNext], Awaitable[None]]
QUICK = Limits(middleware_timeout_ms=20)
SECRET = "db password=hunter2"


@tool
async def echo() -> str:
    return "echo"


def agent(*around: Process, answers: Any = (), limits: Limits = DEFAULT_LIMITS) -> AgentRun:
    plan = plan_of(tools=[echo], middleware=[chat_middleware(process) for process in around], limits=limits)
    return AgentRun(FakeClient(*(answers or (says("the ", "model"),))), plan=plan)


def replacing(text: str, *, hold: bool = False) -> Process:
    async def process(context: ChatContext, call_next: CallNext) -> None:
        context.hold_text = hold
        await call_next()
        context.result = ChatAnswer(text)

    return process


async def forever() -> None:
    await asyncio.Event().wait()


# ---- around the call -------------------------------------------------------------------------------------------------


async def test_it_stands_around_every_model_call_of_a_run() -> None:
    """Case 9."""
    lines: list[str] = []

    class Watch(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: CallNext) -> None:
            lines.append(f"> {context.model} {len(context.messages)}")
            await call_next()
            assert context.result is not None
            lines.append(f"< {context.result.text} {len(context.result.calls)}")

    run = AgentRun(FakeClient(asks("echo"), says("done")), plan=plan_of(tools=[echo], middleware=[Watch()]))
    await run.say("go")

    assert lines == ["> fake:model 1", "<  1", "> fake:model 3", "< done 0"]


async def test_what_it_changes_before_the_call_is_what_the_model_is_sent_and_is_not_kept() -> None:
    async def change(context: ChatContext, call_next: CallNext) -> None:
        context.messages.append(text_message("user", "be brief"))
        context.instructions += "changed"
        context.options = context.options.model_copy(update={"temperature": 0.5})
        context.tools = ()
        context.client_kwargs["extra"] = 1
        await call_next()

    run = agent(change, answers=[asks("echo"), says("done")])
    execution = await run.say("go", client_kwargs={"given": 1})

    for request, sent in zip(run.client.requests, [["go", "be brief"], ["go", "", "", "be brief"]], strict=True):
        assert [message.text for message in request.messages] == sent
        assert (request.instructions, request.options.temperature, request.tools) == ("changed", 0.5, ())
        assert request.client_kwargs == {"given": 1, "extra": 1}
    assert len(execution.progress.messages) == 3


async def test_messages_that_it_cuts_in_two_are_sent_without_the_orphans() -> None:
    """Promise 6: a model request is valid, whatever happened before."""

    async def trim(context: ChatContext, call_next: CallNext) -> None:
        context.messages = context.messages[-1:]
        await call_next()

    run = agent(trim, answers=[asks("echo"), says("done")])
    await run.say("go")

    assert [list(request.messages) for request in run.client.requests][1] == []


async def test_results_whose_calls_the_service_has_are_sent_through_it() -> None:
    class Keeping(FakeClient):
        @property
        def traits(self) -> ModelTraits:
            return ModelTraits(keeps_conversations=True, stores_by_default=True)

    async def process(_context: ChatContext, call_next: CallNext) -> None:
        await call_next()

    first: list[Step] = [*asks(call("echo", "c1"))[:-1], Finished("toolCalls", conversation_id="conv")]
    client = Keeping(first, says("done"))
    await AgentRun(client, plan=plan_of(tools=[echo], middleware=[chat_middleware(process)])).say("go")

    assert (client.requests[1].conversation_id, [m.role for m in client.requests[1].messages]) == ("conv", ["tool"])


async def test_calling_next_again_makes_the_call_again() -> None:
    async def retry(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        assert context.result is not None
        if not context.result.text:
            await call_next()

    run = agent(retry, answers=[says(), says("at last")])
    execution = await run.say("go")

    assert ([m.text for m in execution.progress.messages], len(run.client.requests)) == (["at last"], 2)


async def test_a_failed_call_can_be_made_again() -> None:
    async def retry(_context: ChatContext, call_next: CallNext) -> None:
        try:
            await call_next()
        except ModelUnavailable:
            await call_next()

    execution = await agent(retry, answers=[[TextDelta("ha"), ModelUnavailable("down")], says("ok")]).say("go")

    assert (execution.progress.text, execution.progress.partial_text) == ("ok", "")


# ---- another answer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_an_answer_that_it_replaces_is_told_under_the_id_that_was_streamed(is_streaming: bool) -> None:
    run = agent(replacing("mine"))

    execution = await run.say("go", is_streaming=is_streaming)

    [message] = execution.progress.messages
    [started], [whole] = run.sink.of("message.started"), run.sink.of("message.completed")
    assert run.sink.streamed == "the model"
    assert started["messageId"] == whole["messageId"] == message.message_id
    assert (message.text, execution.progress.text) == ("mine", "mine")
    assert message.source is not None
    assert message.source.type == "middleware"
    assert replacing("mine").__qualname__ in str(message.source.source_id)


async def test_held_text_is_not_sent_before_middleware_has_seen_it_all() -> None:
    run = agent(replacing("mine", hold=True))

    execution = await run.say("go")

    assert run.sink.streamed == "mine"
    [message] = execution.progress.messages
    assert {data["messageId"] for _, data in run.sink.events} == {message.message_id}


async def test_held_text_that_stays_as_it_is_is_sent_once_and_is_the_model_s_own() -> None:
    async def hold(context: ChatContext, call_next: CallNext) -> None:
        context.hold_text = True
        await call_next()
        assert run.sink.streamed == ""

    run = agent(hold)
    execution = await run.say("go")

    assert run.sink.streamed == "the model"
    assert execution.progress.messages[0].source == Source(type="agent", source_id="tester")


async def test_an_answer_without_a_call_is_streamed_and_kept() -> None:
    async def cached(context: ChatContext, _call_next: CallNext) -> None:
        context.result = ChatAnswer("cached")

    run = agent(cached)
    execution = await run.say("go")

    assert (run.client.requests, run.sink.streamed, execution.progress.text) == ([], "cached", "cached")
    assert [kind for kind, _ in run.sink.events] == ["message.started", "message.delta", "message.completed"]


async def test_calls_that_it_takes_out_of_an_answer_are_not_made() -> None:
    async def strip(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        assert context.result is not None
        context.result = replace(context.result, calls=())

    run = agent(strip, answers=[[TextDelta("let me"), *asks("echo")]])
    execution = await run.say("go")

    assert (execution.progress.text, told(execution), run.sink.of("tool.started")) == ("let me", [], [])


async def test_calls_that_it_puts_into_an_answer_are_made() -> None:
    async def add(context: ChatContext, call_next: CallNext) -> None:
        if len(context.messages) == 1:
            context.result = ChatAnswer("", calls=(FunctionCallBlock(call_id="c", name="echo", arguments={}),))
        else:
            await call_next()

    assert told(await agent(add).say("go")) == ["echo"]


@pytest.mark.parametrize(
    ("termination", "text"),
    [
        (MiddlewareTermination(result=ChatAnswer("refused")), "refused"),
        (MiddlewareTermination(), ""),
    ],
)
async def test_a_termination_ends_the_call_with_its_result_or_with_nothing(
    termination: MiddlewareTermination, text: str
) -> None:
    async def end(_context: ChatContext, _call_next: CallNext) -> None:
        raise termination

    run = agent(end)
    execution = await run.say("go")

    assert (run.client.requests, execution.progress.text) == ([], text)
    assert len(execution.progress.messages) == bool(text)


async def test_a_termination_behind_the_call_keeps_the_answer() -> None:
    async def end(_context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        raise MiddlewareTermination

    assert (await agent(end).say("go")).progress.text == "the model"


async def test_another_answer_does_not_forget_where_the_service_keeps_the_conversation() -> None:
    class Keeping(FakeClient):
        @property
        def traits(self) -> ModelTraits:
            return ModelTraits(keeps_conversations=True, stores_by_default=True)

    answer: list[Step] = [TextDelta("the model"), Finished("stop", conversation_id="conv")]
    run = AgentRun(Keeping(answer), plan=plan_of(middleware=[chat_middleware(replacing("mine"))]))

    assert (await run.say("go")).progress.conversation_id == "conv"


# ---- failures --------------------------------------------------------------------------------------------------------


async def left_out(_context: ChatContext, _call_next: CallNext) -> None:
    return


async def hanging(_context: ChatContext, call_next: CallNext) -> None:
    await forever()
    await call_next()


async def raising(_context: ChatContext, _call_next: CallNext) -> None:
    raise ValueError(SECRET)


async def exiting(_context: ChatContext, _call_next: CallNext) -> None:
    raise SystemExit(SECRET)


async def failing(_context: ChatContext, _call_next: CallNext) -> None:
    raise MiddlewareFailure("not this model")


async def answering_text(context: ChatContext, _call_next: CallNext) -> None:
    answer: Any = "text"
    context.result = answer


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (left_out, "gave no result"),
        (hanging, "longer than 0.02 s"),
        (raising, "ValueError"),
        (exiting, "SystemExit"),
        (failing, "not this model"),
        (answering_text, "is a str"),
    ],
)
async def test_it_fails_the_run_by_name_and_no_model_is_called(process: Process, why: str) -> None:
    run = agent(process, limits=QUICK)

    with pytest.raises(MiddlewareFailed, match=why) as caught:
        await run.say("go")

    assert "hunter2" not in caught.value.message
    assert run.client.requests == []


async def test_a_failing_model_is_told_as_the_model_s_failure() -> None:
    async def process(_context: ChatContext, call_next: CallNext) -> None:
        await call_next()

    with pytest.raises(ModelUnavailable):
        await agent(process, answers=[[ModelUnavailable("down")]]).say("go")


async def test_the_model_s_own_time_is_not_the_middleware_s() -> None:
    async def process(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        assert context.result is not None

    slow = Hang()
    run = agent(process, limits=QUICK, answers=[[TextDelta("a"), slow]])
    work = asyncio.create_task(run.execution("go").run())
    await slow.reached.wait()
    done, _ = await asyncio.wait({work}, timeout=0.1)
    work.cancel()

    assert not done


async def test_text_that_a_guard_holds_and_refuses_is_shown_nowhere() -> None:
    async def guard(context: ChatContext, call_next: CallNext) -> None:
        context.hold_text = True
        await call_next()
        raise MiddlewareFailure("unfit")

    run = agent(guard)
    execution = run.execution("go")
    with pytest.raises(MiddlewareFailed):
        await execution.run()

    assert (run.sink.events, execution.progress.partial_text, execution.progress.messages) == ([], "", [])


async def test_text_that_is_held_when_the_run_is_stopped_is_shown_nowhere() -> None:
    hang = Hang()
    run = agent(replacing("mine", hold=True), answers=[[TextDelta("unfit"), hang]])
    execution = run.execution("go")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert (run.sink.events, execution.progress.partial_text) == ([], "")


async def test_reasoning_is_kept_beside_text_that_stays() -> None:
    async def process(_context: ChatContext, call_next: CallNext) -> None:
        await call_next()

    answer: list[Step] = [ReasoningDelta("hm"), *says("the model")]
    execution = await agent(process, answers=[answer]).say("go")

    assert execution.progress.messages[0].content == (ReasoningBlock(text="hm"), TextBlock(text="the model"))
