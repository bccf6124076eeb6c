"""The run loop without a store or a wire: model calls, tool calls that cannot be run, limits, output, usage."""

import asyncio
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, ReasoningBlock, TextBlock, Usage
from providers.api.ports import Finished, ReasoningDelta, RetryNotice, TextDelta
from sidecar.agents.loop import LIMIT_TEXT
from sidecar.agents.structured import response_schema
from sidecar.agents.tool_batch import SURPLUS_TEXT, TRUNCATED_TEXT
from sidecar.config.limits import Limits
from sidecar.errors import InvalidParams, ModelBadStream, ModelUnavailable
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, Hang, Step, calls, gives, says
from tests.bench.providers import Hook, Log, Recorder

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def roles(messages: "list[Message]") -> list[str]:
    return [message.role for message in messages]


def results(message: Message) -> list[tuple[str, str, bool | None]]:
    found = [block for block in message.content if isinstance(block, FunctionResultBlock)]
    texts = ["".join(part.text for part in block.content if isinstance(part, TextBlock)) for block in found]
    return [(block.call_id, text, block.is_error) for block, text in zip(found, texts, strict=True)]


# ---- one call --------------------------------------------------------------------------------------------------------


async def test_an_answer_is_streamed_as_it_comes_and_stored_whole() -> None:
    run = AgentRun(FakeClient(says("Once ", "", "upon")))

    execution = await run.say("a story")

    [message] = execution.progress.messages
    assert (message.role, message.text, message.author_name) == ("assistant", "Once upon", "tester")
    assert message.source is not None
    assert (message.source.type, message.source.source_id, message.run_id) == ("agent", "tester", "run-1")
    assert [kind for kind, _ in run.sink.events] == [
        "message.started",
        "message.delta",
        "message.delta",
        "message.completed",
    ]
    assert {data["messageId"] for _, data in run.sink.events} == {message.message_id}
    assert run.sink.breaths == 3
    assert execution.progress.partial_text == ""
    assert (execution.progress.stop_reason, execution.progress.answered) == ("endTurn", True)


async def test_reasoning_is_streamed_and_kept_apart_from_the_text() -> None:
    answer: list[Step] = [ReasoningDelta("Hm"), ReasoningDelta("m."), *says("Yes.")]
    run = AgentRun(FakeClient(answer))

    execution = await run.say("?")

    [message] = execution.progress.messages
    assert message.content == (ReasoningBlock(text="Hmm."), TextBlock(text="Yes."))
    assert execution.progress.text == "Yes."
    assert [data["text"] for data in run.sink.of("reasoning.delta")] == ["Hm", "m."]
    [whole] = run.sink.of("reasoning.completed")
    assert whole == {"messageId": message.message_id, "text": "Hmm."}


async def test_an_empty_answer_is_no_message() -> None:
    run = AgentRun(FakeClient(says()))

    execution = await run.say("?")

    assert execution.progress.messages == []
    assert run.sink.events == []


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "endTurn"), ("length", "maxTokens"), ("contentFilter", "contentFilter"), ("refusal", "refusal")],
)
async def test_the_model_s_reason_to_stop_is_the_run_s(reason: Any, stop: str) -> None:
    execution = await AgentRun(FakeClient(says("text", reason=reason))).say("?")

    assert execution.progress.stop_reason == stop
    assert execution.progress.text == "text"


async def test_a_stream_without_an_ending_fails_the_run_and_keeps_what_came_as_partial_text() -> None:
    run = AgentRun(FakeClient([TextDelta("half")]))
    execution = run.execution("?")

    with pytest.raises(ModelBadStream):
        await execution.run()

    assert execution.progress.partial_text == "half"
    assert execution.progress.messages == []


async def test_a_retry_is_told_as_a_warning_at_once() -> None:
    run = AgentRun(FakeClient([RetryNotice("the endpoint is busy", 2), *says("ok")]))

    await run.say("?")

    assert run.sink.events[0] == (
        "warning",
        {"kind": "modelRetry", "message": "the endpoint is busy", "willRetry": True, "attempt": 2},
    )
    assert run.sink.warnings == []


async def test_the_run_s_options_and_model_reach_the_client() -> None:
    main, other = FakeClient(), FakeClient(says("ok"), name="fake:other")
    run = AgentRun(main, others=[other])
    options = RunOptions(model="fake:other", temperature=0.5)

    await run.say("?", options=options, client_kwargs={"extraBody": {"a": 1}})

    assert other.requests[0].options == options
    assert other.requests[0].client_kwargs == {"extraBody": {"a": 1}}


async def test_the_agent_s_model_is_used_where_the_run_names_none() -> None:
    other = FakeClient(says("ok"), name="fake:other")

    await AgentRun(FakeClient(), others=[other], plan=plan_of(model="fake:other")).say("?")

    assert len(other.requests) == 1


async def test_no_model_is_asked_before_the_run_has_one() -> None:
    execution = AgentRun(FakeClient()).execution("?")

    with pytest.raises(RuntimeError, match="no model yet"):
        execution.chat_client()


async def test_the_response_is_given_to_the_hooks_after_the_run() -> None:
    found: list[tuple[str, int]] = []

    def after(hook: Hook) -> None:
        assert hook.context.response is not None
        found.append((hook.context.response.text, len(hook.context.response.messages)))

    client = FakeClient([*says("wait")[:-1], *calls("t")], says("done"))
    await AgentRun(client, [Recorder("p", Log(), after=after)]).say("?")

    assert found == [("waitdone", 3)]


async def test_a_cancel_while_the_answer_is_stored_leaves_its_text_there_once() -> None:
    run = AgentRun(FakeClient(says("whole")))
    execution = run.execution("?")
    storing = asyncio.Event()

    async def slow_commit(*drafts: Any) -> None:
        if drafts:
            storing.set()
            await asyncio.Event().wait()

    run.sink.commit = slow_commit
    work = asyncio.create_task(execution.run())
    await storing.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert execution.progress.text == "whole"
    assert execution.progress.partial_text == ""


# ---- tool calls that cannot be run -----------------------------------------------------------------------------------


async def test_calls_of_unknown_tools_get_one_result_each_in_one_message_and_the_run_goes_on() -> None:
    run = AgentRun(FakeClient(calls("rm", "ls"), says("sorry")))

    execution = await run.say("go")

    assert roles(execution.progress.messages) == ["assistant", "tool", "assistant"]
    assert results(execution.progress.messages[1]) == [
        ("c-rm", 'Error: Requested function "rm" not found.', True),
        ("c-ls", 'Error: Requested function "ls" not found.', True),
    ]
    assert roles(list(run.client.requests[1].messages)) == ["user", "assistant", "tool"]
    assert [(e["callId"], e["name"], e["status"]) for e in run.sink.of("tool.completed")] == [
        ("c-rm", "rm", "failed"),
        ("c-ls", "ls", "failed"),
    ]
    assert execution.progress.stop_reason == "endTurn"
    assert execution.progress.text == "sorry"


async def test_two_rounds_of_truncated_calls_are_asked_for_again_and_the_third_fails_the_run() -> None:
    cut = calls("write", reason="length")
    run = AgentRun(FakeClient(cut, cut, cut))
    execution = run.execution("go")

    with pytest.raises(ModelBadStream, match="cut off"):
        await execution.run()

    assert len(run.client.requests) == 3
    assert results(execution.progress.messages[1]) == [("c-write", TRUNCATED_TEXT, True)]


async def test_a_truncated_call_that_comes_whole_the_next_time_is_no_failure() -> None:
    run = AgentRun(FakeClient(calls("write", reason="length"), says("ok")))

    assert (await run.say("go")).progress.text == "ok"


async def test_how_many_rounds_of_truncated_calls_are_borne_is_the_plan_s() -> None:
    cut = calls("write", reason="length")
    none = AgentRun(FakeClient(cut), plan=plan_of(limits=Limits(truncated_call_rounds=0)))
    three = AgentRun(FakeClient(cut, cut, cut, says("ok")), plan=plan_of(limits=Limits(truncated_call_rounds=3)))

    with pytest.raises(ModelBadStream, match="cut off"):
        await none.execution("go").run()
    assert (await three.say("go")).progress.text == "ok"


async def test_calls_beyond_the_limit_of_one_answer_get_a_result_that_says_so() -> None:
    plan = plan_of(limits=Limits(max_tool_calls=2))
    run = AgentRun(FakeClient(calls("a", "b"), calls("c", "d", "e"), says("ok")), plan=plan)

    execution = await run.say("go")

    surplus = SURPLUS_TEXT.format(most=2)
    assert [text == surplus for _, text, _ in results(execution.progress.messages[1])] == [False, False]
    assert [text == surplus for _, text, _ in results(execution.progress.messages[3])] == [False, False, True]
    assert len(run.sink.of("tool.completed")) == 5


@pytest.mark.parametrize(
    ("closing", "text"),
    [
        (says("So be it."), "So be it."),
        (calls("again"), LIMIT_TEXT),
        (says(), LIMIT_TEXT),
        ([ReasoningDelta("Hm."), Finished("stop")], LIMIT_TEXT),
    ],
    ids=["text", "calls", "nothing", "reasoning"],
)
async def test_at_the_limit_one_more_call_closes_the_run(closing: list[Step], text: str) -> None:
    run = AgentRun(FakeClient(calls("a"), calls("b"), calls("c"), closing), plan=plan_of(maxTurns=3))

    execution = await run.say("go")

    assert len(run.client.requests) == 4
    assert execution.progress.stop_reason == "maxTurns"
    assert execution.progress.messages[-1].text == text
    kept = [block for m in execution.progress.messages for block in m.content if isinstance(block, FunctionCallBlock)]
    assert [block.name for block in kept] == ["a", "b", "c"]


async def test_the_run_may_lower_the_limit() -> None:
    run = AgentRun(FakeClient(calls("a"), says("ok")))

    execution = await run.say("go", options=RunOptions(max_turns=1))

    assert execution.progress.stop_reason == "maxTurns"
    assert execution.progress.text == "ok"


async def test_a_failure_in_a_later_call_keeps_the_earlier_messages() -> None:
    run = AgentRun(FakeClient(calls("a"), [TextDelta("so"), ModelUnavailable("down")]))
    execution = run.execution("go")

    with pytest.raises(ModelUnavailable):
        await execution.run()

    assert roles(execution.progress.messages) == ["assistant", "tool"]
    assert execution.progress.partial_text == "so"


# ---- structured output -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "value", "error"),
    [
        ('{"n": 3}', {"n": 3}, None),
        ('{"n": "three"}', None, "$.n"),
        ("three", None, "no JSON"),
        ("", None, "no JSON"),
        ('{"n": 3, "x": NaN}', None, "no JSON"),
        ('{"n": 3, "x": 1e999}', None, "float64"),
        ("[" * 100_000, None, "nested too deep"),
    ],
    ids=["right", "wrong type", "text", "nothing", "NaN", "infinite", "deep"],
)
async def test_the_answer_is_read_as_a_value_and_a_bad_one_is_no_failure(
    answer: str, value: Any, error: str | None
) -> None:
    run = AgentRun(FakeClient(says(answer)))

    progress = (await run.say("count", response_schema=COUNT)).progress

    assert run.client.requests[0].response_schema == COUNT
    assert progress.value == value
    assert (progress.value_error is None) == (error is None)
    assert (error or "") in (progress.value_error or "")
    assert progress.text == answer


async def test_the_value_is_read_from_the_last_text_of_the_assistant_only() -> None:
    first: list[Step] = [TextDelta('{"n": 1}'), *calls("t")]
    last: list[Step] = [ReasoningDelta('{"n": 9}'), *gives({"n": 2})]

    progress = (await AgentRun(FakeClient(first, last)).say("count", response_schema=COUNT)).progress

    assert progress.value == {"n": 2}
    assert progress.text == '{"n": 1}{"n": 2}'


async def test_a_null_is_a_value() -> None:
    progress = (await AgentRun(FakeClient(says("null"))).say("?", response_schema={"type": "null"})).progress

    assert (progress.value, progress.value_error) == (None, None)


async def test_a_schema_that_refers_to_itself_without_end_is_no_crash() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}

    progress = (await AgentRun(FakeClient(says("1"))).say("?", response_schema=schema)).progress

    assert progress.value_error is not None


@pytest.mark.parametrize("wrapped", [COUNT, {"type": "json_schema", "json_schema": {"name": "c", "schema": COUNT}}])
def test_a_schema_may_come_bare_or_in_openai_s_wrapper(wrapped: Any) -> None:
    assert response_schema(wrapped) == COUNT


@pytest.mark.parametrize(
    "wrong", ["json", 3, [], {"type": "json_object"}, {"type": "json_schema", "json_schema": {}}, {"type": "obj"}]
)
def test_what_is_no_schema_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParams, match="responseFormat"):
        response_schema(wrong)


# ---- usage -----------------------------------------------------------------------------------------------------------


async def test_usage_is_summed_over_the_calls() -> None:
    first: list[Step] = [*calls("t")[:-1], Finished("toolCalls", Usage(input_tokens=10, output_tokens=2))]
    second = says("ok", usage=Usage(input_tokens=20, output_tokens=3, cached_input_tokens=8))

    execution = await AgentRun(FakeClient(first, second)).say("go")

    assert execution.progress.meter.usage == Usage(input_tokens=30, output_tokens=5, cached_input_tokens=8)


async def test_usage_is_estimated_where_the_endpoint_is_silent() -> None:
    run = AgentRun(FakeClient(says("12345678")), plan=plan_of(instructions="1234"))

    execution = await run.say("12345")

    assert execution.progress.meter.usage == Usage(input_tokens=3, output_tokens=2, estimated=True)


async def test_a_call_that_was_cut_counts_by_estimate() -> None:
    hang = Hang()
    run = AgentRun(FakeClient([TextDelta("12345678"), hang]))
    execution = run.execution("1234")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()

    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert execution.progress.meter.usage == Usage(input_tokens=1, output_tokens=2, estimated=True)


async def test_a_call_that_brought_nothing_counts_nothing() -> None:
    execution = AgentRun(FakeClient([ModelUnavailable("down")])).execution("?")

    with pytest.raises(ModelUnavailable):
        await execution.run()

    assert execution.progress.meter.usage == Usage()
