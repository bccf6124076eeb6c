"""The chat client against a fake endpoint: what a call sends, and what it hands on when all goes well."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from protocol.agents import NamedToolChoice, RunOptions
from protocol.messages import (
    FunctionCallBlock,
    FunctionResultBlock,
    MediaBlock,
    Message,
    TextBlock,
    Usage,
    text_message,
)
from providers.api.ports import (
    CallRequested,
    ChatRequest,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolSpec,
    ask,
)
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import InvalidParams
from sidecar.models.call_pairs import UnpairedCallsError
from sidecar.models.openai_chat import OpenAIChat
from sidecar.models.openai_endpoint import OpenAIEndpoint
from tests.bench.fake_model import CUT, DONE, EOF, TC, Chunk, F, FakeModel, Ping, Raw, Reply, Stall, T, Think

HELLO = ChatRequest(messages=[text_message("user", "hi")])
WEATHER = ToolSpec("weather", "Tells the weather", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest_asyncio.fixture
async def client(model: FakeModel) -> AsyncIterator[OpenAIChat]:
    endpoint = OpenAIEndpoint("local", EndpointConfig(base_url=model.url, idle_timeout_ms=5000), environ={})
    yield OpenAIChat(endpoint, "fake")
    await endpoint.aclose()


async def updates_of(client: OpenAIChat, request: ChatRequest = HELLO) -> list[Any]:
    return [update async for update in client.stream(request)]


async def test_text_comes_as_deltas_and_ends_once(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("Hel"), T("lo"))
    assert await updates_of(client) == [TextDelta("Hel"), TextDelta("lo"), Finished("stop", None, "fake")]


async def test_reasoning_is_kept_apart_under_either_name(model: FakeModel, client: OpenAIChat) -> None:
    model.says(Think("hm"), Think("so", key="reasoning"), "yes")
    assert (await updates_of(client))[:3] == [ReasoningDelta("hm"), ReasoningDelta("so"), TextDelta("yes")]


async def test_chunks_without_choices_carry_usage(model: FakeModel, client: OpenAIChat) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    model.says(
        Chunk({"choices": [], "prompt_filter_results": []}),
        T("x"),
        F("stop"),
        Chunk({"choices": [], "usage": usage}),
        DONE,
    )
    assert (await ask(client, HELLO)).finish.usage == Usage(input_tokens=7, output_tokens=2, cached_input_tokens=3)


async def test_the_body_need_not_say_done(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("x"), F("stop"), EOF)
    assert (await ask(client, HELLO)).text == "x"


async def test_an_answer_that_is_complete_does_not_wait_for_a_silent_connection(
    model: FakeModel, client: OpenAIChat
) -> None:
    model.says(T("x"), F("stop"), DONE, Stall())
    async with asyncio.timeout(1):
        assert (await ask(client, HELLO)).text == "x"


async def test_a_connection_that_breaks_after_the_finish_reason_costs_nothing(
    model: FakeModel, client: OpenAIChat
) -> None:
    model.says(T("x"), F("stop"), CUT)
    assert (await ask(client, HELLO)).text == "x"


async def test_one_json_document_is_read_as_the_answer(model: FakeModel, client: OpenAIChat) -> None:
    call = {"id": "c1", "function": {"name": "weather", "arguments": '{"city":"Ghent"}'}}
    message = {"role": "assistant", "content": "Let me see", "tool_calls": [call]}
    model.completes({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "model": "m"})
    answer = await ask(client, HELLO)
    assert (answer.text, answer.calls) == (
        "Let me see",
        (FunctionCallBlock(call_id="c1", name="weather", arguments={"city": "Ghent"}),),
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("length", "length"), ("content_filter", "contentFilter"), ("stop", "stop"), ("eos_token", "stop")],
)
async def test_finish_reasons_are_told_apart(model: FakeModel, client: OpenAIChat, reason: str, expected: str) -> None:
    model.says("half a sen", F(reason))
    assert (await ask(client, HELLO)).finish.reason == expected


async def test_a_refusal_is_text_with_its_own_reason(model: FakeModel, client: OpenAIChat) -> None:
    model.says(Chunk({"choices": [{"index": 0, "delta": {"refusal": "I will not"}}]}), F("stop"))
    answer = await ask(client, HELLO)
    assert (answer.text, answer.finish.reason) == ("I will not", "refusal")


async def test_calls_of_a_filtered_answer_are_not_handed_on(model: FakeModel, client: OpenAIChat) -> None:
    model.says(TC(0, "c1", "weather", "{}"), F("content_filter"))
    assert (await ask(client, HELLO)).calls == ()


async def test_half_a_surrogate_pair_becomes_the_replacement_character(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("bad \udc88 tail"), T("\ud83e"), T("\udd5f!"), T("\ud83e"))
    assert (await ask(client, HELLO)).text == "bad \ufffd tail🥟!\ufffd"


async def test_text_keeps_its_language(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("好的 ✅"), cut_every=1)
    assert (await ask(client, HELLO)).text == "好的 ✅"


async def test_a_delta_of_two_mebibytes_on_one_line_comes_whole(model: FakeModel, client: OpenAIChat) -> None:
    text = "x" * (2 << 20)
    model.says(T(text))
    assert (await ask(client, HELLO)).text == text


async def test_comments_and_odd_line_ends_are_no_matter(model: FakeModel, client: OpenAIChat) -> None:
    body = b': hi\r\nevent: x\r\ndata:{"choices":[{"delta":\r\ndata: {"content":"a"}}]}\r\n\r\n: ping\r\n\r\n'
    model.says(Raw(body), F("stop"))
    assert (await ask(client, HELLO)).text == "a"


async def test_one_connection_serves_call_after_call(model: FakeModel, client: OpenAIChat) -> None:
    for _ in range(3):
        model.says("x")
        await ask(client, HELLO)
    assert model.connections == 1


async def test_closing_the_stream_hangs_up_at_once(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("a"), Stall())
    async with aclosing(client.stream(HELLO)) as stream:
        assert await anext(stream) == TextDelta("a")
    await model.quiet(within=1)
    assert model.last_request.hung_up


async def test_cancelling_a_silent_call_hangs_up_at_once(model: FakeModel, client: OpenAIChat) -> None:
    model.hangs()
    call = asyncio.create_task(ask(client, HELLO))
    await model.received()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await model.quiet(within=1)


async def test_nothing_is_left_over_after_many_broken_off_calls(model: FakeModel, client: OpenAIChat) -> None:
    before = asyncio.all_tasks()
    for _ in range(20):
        model.says(T("a"), Stall())
        async with aclosing(client.stream(HELLO)) as stream:
            await anext(stream)
    await model.quiet()
    left = asyncio.all_tasks() - before
    await asyncio.wait_for(asyncio.gather(*left), 1)


async def test_instructions_and_history_are_mapped(model: FakeModel, client: OpenAIChat) -> None:
    model.says("ok")
    history = [
        text_message("user", "weather?"),
        Message(
            role="assistant",
            content=(
                {"type": "reasoning", "text": "secret"},
                FunctionCallBlock(call_id="c1", name="weather", arguments={}, raw_arguments="{bro"),
            ),
        ),
        Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=(TextBlock(text="rain"),)),)),
        text_message("assistant", "cut off", partial=True),
        Message(
            role="user", content=(TextBlock(text="see"), MediaBlock(type="image", data="aGk=", mime_type="image/png"))
        ),
    ]
    await ask(client, ChatRequest(history, instructions="Be brief."))
    assert model.last_request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
    ]


async def test_only_options_that_are_given_are_sent(model: FakeModel, client: OpenAIChat) -> None:
    model.says("ok")
    options = RunOptions(
        temperature=0.0, max_output_tokens=9, stop=("END",), tool_choice=NamedToolChoice(name="weather")
    )
    await ask(client, ChatRequest(HELLO.messages, options=options, tools=[WEATHER]))
    body = model.last_request.body
    assert {name: body[name] for name in body.keys() - {"messages", "tools"}} == {
        "model": "fake",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "max_tokens": 9,
        "stop": ["END"],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    }
    assert model.last_request.tool_names == ["weather"]


async def test_extra_body_adds_and_null_takes_away(model: FakeModel, client: OpenAIChat) -> None:
    model.says("ok")
    kwargs = {"extraBody": {"top_k": 5, "stream_options": None}, "extraHeaders": {"x-team": "blue"}, "other": 1}
    await ask(client, ChatRequest(HELLO.messages, client_kwargs=kwargs))
    body = model.last_request.body
    assert (body["top_k"], "stream_options" in body, "other" in body) == (5, False, False)
    assert model.last_request.headers["x-team"] == "blue"


@pytest.mark.parametrize(
    "kwargs",
    [
        {"extraBody": {"messages": []}},
        {"extraBody": 3},
        {"extraHeaders": {"a": "b\r\nc: d"}},
        {"extraHeaders": {"a": 1}},
        {"extraHeaders": "x"},
    ],
)
async def test_extras_that_cannot_be_sent_are_refused(client: OpenAIChat, kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await ask(client, ChatRequest(HELLO.messages, client_kwargs=kwargs))


async def test_an_unpaired_history_is_never_sent(model: FakeModel, client: OpenAIChat) -> None:
    call = FunctionCallBlock(call_id="c1", name="weather", arguments={})
    for history in (
        [Message(role="assistant", content=(call,))],
        [Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=()),))],
        [Message(role="assistant", content=(call,)), text_message("user", "hi")],
        [Message(role="assistant", content=(call, call))],
    ):
        with pytest.raises(UnpairedCallsError):
            await ask(client, ChatRequest(history))
    assert model.requests == []


async def test_a_call_that_reuses_an_old_id_gets_a_new_one(model: FakeModel, client: OpenAIChat) -> None:
    history = [
        Message(role="assistant", content=(FunctionCallBlock(call_id="call_0", name="weather", arguments={}),)),
        Message(role="tool", content=(FunctionResultBlock(call_id="call_0", content=()),)),
    ]
    model.says(TC(0, "call_0", "weather", "{}"))
    updates = await updates_of(client, ChatRequest(history))
    calls = [update.call for update in updates if isinstance(update, CallRequested)]
    assert len(calls) == 1
    assert calls[0].call_id not in {"", "call_0"}


async def test_a_ping_between_the_pieces_is_passed_over(model: FakeModel, client: OpenAIChat) -> None:
    model.says(T("a"), Ping(0.01, times=3), T("b"))
    assert (await ask(client, HELLO)).text == "ab"


async def test_a_slow_server_that_sends_byte_by_byte_is_understood(model: FakeModel, client: OpenAIChat) -> None:
    model.replies(Reply([T("slow"), F("stop"), DONE], cut_every=1))
    assert (await ask(client, HELLO)).text == "slow"
