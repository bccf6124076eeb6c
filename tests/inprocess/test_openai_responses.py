"""The Responses client against a fake endpoint: what a call hands on, and how conversations go on."""

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
    Message,
    TextBlock,
    Usage,
    text_message,
)
from providers.api.ports import CallRequested, ChatRequest, Finished, ReasoningDelta, TextDelta, ToolSpec, ask
from sidecar.config.endpoints import EndpointConfig
from sidecar.models.openai_endpoint import OpenAIEndpoint
from sidecar.models.openai_responses import OpenAIResponses
from tests.bench.fake_model import CUT, DONE, Ping, Stall, T, Think
from tests.bench.fake_responses import FakeResponses
from tests.bench.response_script import Call, End, Event, Refuse, Search

HI = text_message("user", "hi")
HELLO = ChatRequest(messages=[HI])
WEATHER = ToolSpec("weather", "Tells the weather", {"type": "object", "properties": {"city": {"type": "string"}}})
SEARCH = ToolSpec("search", "Searches the web", {}, hosted="web_search")
RESULT = Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=(TextBlock(text="rain"),)),))
CALL = Message(role="assistant", content=(FunctionCallBlock(call_id="c1", name="weather", arguments={}),))


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeResponses]:
    async with FakeResponses() as fake:
        yield fake


@pytest_asyncio.fixture
async def client(model: FakeResponses) -> AsyncIterator[OpenAIResponses]:
    config = EndpointConfig(type="openai_responses", base_url=model.url, idle_timeout_ms=5000, context_size=99)
    endpoint = OpenAIEndpoint("service", config, environ={})
    yield OpenAIResponses(endpoint, "fake")
    await endpoint.aclose()


async def updates_of(client: OpenAIResponses, request: ChatRequest = HELLO) -> list[Any]:
    return [update async for update in client.stream(request)]


async def test_it_says_that_its_service_keeps_conversations_and_searches(client: OpenAIResponses) -> None:
    traits = client.traits
    assert (client.name, traits.stores_by_default, traits.hosted_tools, traits.context_size) == (
        "service:fake",
        True,
        {"web_search"},
        99,
    )


async def test_text_and_reasoning_come_as_deltas_and_end_once(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Think("hm"), T("Hel"), T("lo"))
    assert await updates_of(client) == [
        ReasoningDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        Finished("stop", None, "fake", "resp_1"),
    ]


async def test_raw_reasoning_counts_as_reasoning(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Event({"type": "response.reasoning_text.delta", "delta": "so"}), "yes")
    assert (await updates_of(client))[:2] == [ReasoningDelta("so"), TextDelta("yes")]


async def test_parts_of_the_reasoning_stay_paragraphs(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Think("one"), Think("two"), "yes")
    updates = await updates_of(client)
    assert "".join(update.text for update in updates if isinstance(update, ReasoningDelta)) == "one\n\ntwo"


async def test_usage_tells_what_was_cached_and_what_was_reasoned(model: FakeResponses, client: OpenAIResponses) -> None:
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    model.says("x", End(usage=usage))
    assert (await ask(client, HELLO)).finish.usage == Usage(
        input_tokens=7, output_tokens=5, cached_input_tokens=3, reasoning_tokens=4
    )


@pytest.mark.parametrize("cut_every", [1, 5, 1000])
async def test_parallel_calls_come_whole_however_their_arguments_were_cut(
    model: FakeResponses, client: OpenAIResponses, cut_every: int
) -> None:
    model.says(
        "Let me see",
        Call("c1", "weather", '{"city":"Ghent"}', cut_every),
        Call("c2", "weather", '{"city":"東京"}', cut_every),
        Call("c3", "now", "{}", cut_every),
    )
    updates = await updates_of(client)
    assert [update.call for update in updates if isinstance(update, CallRequested)] == [
        FunctionCallBlock(call_id="c1", name="weather", arguments={"city": "Ghent"}),
        FunctionCallBlock(call_id="c2", name="weather", arguments={"city": "東京"}),
        FunctionCallBlock(call_id="c3", name="now", arguments={}),
    ]
    assert updates[-1].reason == "toolCalls"


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (End("completed"), "stop"),
        (End("incomplete", reason="max_output_tokens"), "length"),
        (End("incomplete", reason="content_filter"), "contentFilter"),
        (End("incomplete"), "length"),
    ],
)
async def test_endings_are_told_apart(
    model: FakeResponses, client: OpenAIResponses, ending: End, expected: str
) -> None:
    model.says("half a sen", ending)
    answer = await ask(client, HELLO)
    assert (answer.text, answer.finish.reason) == ("half a sen", expected)


async def test_a_refusal_is_text_with_its_own_reason(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Refuse("I will not"))
    answer = await ask(client, HELLO)
    assert (answer.text, answer.finish.reason) == ("I will not", "refusal")


async def test_calls_of_a_filtered_answer_are_not_handed_on(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Call("c1", "weather"), End("incomplete", reason="content_filter"))
    assert (await ask(client, HELLO)).calls == ()


async def test_a_call_cut_by_the_token_limit_is_told_with_that_reason(
    model: FakeResponses, client: OpenAIResponses
) -> None:
    model.says(Call("c1", "order", '{"dish', status="incomplete"), End("incomplete", reason="max_output_tokens"))
    answer = await ask(client, HELLO)
    assert (answer.finish.reason, [call.raw_arguments for call in answer.calls]) == ("length", ['{"dish'])


async def test_a_web_search_is_offered_and_its_steps_are_passed_over(
    model: FakeResponses, client: OpenAIResponses
) -> None:
    citation = {"type": "response.output_text.annotation.added", "annotation": {"type": "url_citation"}}
    model.says(Search("weather in Ghent"), "Rain", Event(citation))
    request = ChatRequest([HI], tools=[SEARCH, WEATHER], options=RunOptions(tool_choice=NamedToolChoice(name="search")))
    answer = await ask(client, request)
    assert (answer.text, answer.calls, answer.finish.reason) == ("Rain", (), "stop")
    assert model.last_request.body["tools"] == [
        {"type": "web_search"},
        {
            "type": "function",
            "name": "weather",
            "description": "Tells the weather",
            "parameters": WEATHER.input_schema,
            "strict": False,
        },
    ]
    assert model.last_request.body["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "web_search"}],
    }


async def test_the_answers_id_carries_the_conversation_on(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Call("c1", "weather"))
    first = (await ask(client, ChatRequest([HI], instructions="Be brief."))).finish
    model.says("rain")
    second = (await ask(client, ChatRequest([RESULT], "Be brief.", conversation_id=first.conversation_id))).finish
    assert (first.conversation_id, second.conversation_id) == ("resp_1", "resp_2")
    assert model.last_request.body == {
        "model": "fake",
        "instructions": "Be brief.",
        "input": [{"type": "function_call_output", "call_id": "c1", "output": "rain"}],
        "previous_response_id": "resp_1",
        "stream": True,
    }


async def test_a_conversation_is_named_and_stays_the_same(model: FakeResponses, client: OpenAIResponses) -> None:
    model.keeps("conv_7")
    for _ in range(2):
        model.says("ok")
        finish = (await ask(client, ChatRequest([HI], conversation_id="conv_7"))).finish
        assert finish.conversation_id == "conv_7"
        assert model.last_request.body["conversation"] == "conv_7"
        assert "previous_response_id" not in model.last_request.body


async def test_what_the_service_does_not_keep_has_no_id(model: FakeResponses, client: OpenAIResponses) -> None:
    for fields in ({"options": RunOptions(store=False)}, {"client_kwargs": {"extraBody": {"store": False}}}):
        model.says("ok")
        assert (await ask(client, ChatRequest([HI], **fields))).finish.conversation_id is None
        assert model.last_request.body["store"] is False
        assert "include" not in model.last_request.body


async def test_a_service_that_says_nothing_of_keeping_is_taken_at_the_requests_word(
    model: FakeResponses, client: OpenAIResponses
) -> None:
    for store, expected in ((None, "resp_9"), (True, "resp_9"), (False, None)):
        model.completes({"id": "resp_9", "status": "completed", "output": []})
        answer = await ask(client, ChatRequest([HI], options=RunOptions(store=store)))
        assert answer.finish.conversation_id == expected


async def test_a_service_that_says_that_it_keeps_nothing_is_believed(
    model: FakeResponses, client: OpenAIResponses
) -> None:
    model.says(Event({"type": "response.completed", "response": {"id": "resp_x", "store": False}}), DONE)
    assert (await ask(client, HELLO)).finish.conversation_id is None


async def test_a_call_that_reuses_an_old_id_gets_a_new_one(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says(Call("c1", "weather"))
    (call,) = (await ask(client, ChatRequest([CALL, RESULT]))).calls
    assert call.call_id not in {"", "c1"}


async def test_an_answer_that_is_complete_waits_for_nothing_more(model: FakeResponses, client: OpenAIResponses) -> None:
    for after in (Stall(), CUT):
        model.says("x", End(), after)
        async with asyncio.timeout(2):
            assert (await ask(client, HELLO)).text == "x"


async def test_the_response_as_one_document_is_the_answer(model: FakeResponses, client: OpenAIResponses) -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Let me see"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
    ]
    model.completes({"object": "response", "id": "resp_9", "status": "completed", "error": None, "output": output})
    assert await updates_of(client) == [
        ReasoningDelta("hm"),
        TextDelta("Let me see"),
        CallRequested(FunctionCallBlock(call_id="c1", name="weather", arguments={})),
        Finished("toolCalls", None, None, "resp_9"),
    ]


async def test_a_slow_stream_with_pings_is_understood(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says("好的 ✅", Ping(0.01, times=3), Call("c1", "weather", '{"city":"東京"}', 2), cut_every=1)
    answer = await ask(client, HELLO)
    assert (answer.text, answer.calls[0].arguments) == ("好的 ✅", {"city": "東京"})


async def test_one_connection_serves_call_after_call(model: FakeResponses, client: OpenAIResponses) -> None:
    for _ in range(3):
        model.says("x")
        await ask(client, HELLO)
    assert model.connections == 1


async def test_closing_the_stream_hangs_up_at_once(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says("a", Stall())
    async with aclosing(client.stream(HELLO)) as stream:
        assert await anext(stream) == TextDelta("a")
    await model.quiet(within=1)
    assert model.last_request.hung_up
