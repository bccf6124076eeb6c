"""The Responses client against a fake endpoint: what a call sends, and what it refuses to send."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from protocol.agents import NamedToolChoice, RunOptions
from protocol.messages import (
    FunctionCallBlock,
    FunctionResultBlock,
    MediaBlock,
    Message,
    TextBlock,
    text_message,
)
from providers.api.ports import ChatRequest, ToolSpec, ask
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import InvalidParams
from sidecar.models.call_pairs import UnpairedCallsError
from sidecar.models.openai_endpoint import OpenAIEndpoint
from sidecar.models.openai_responses import OpenAIResponses
from tests.bench.fake_responses import FakeResponses

HI = text_message("user", "hi")
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
    config = EndpointConfig(type="openai_responses", base_url=model.url)
    endpoint = OpenAIEndpoint("service", config, environ={})
    yield OpenAIResponses(endpoint, "fake")
    await endpoint.aclose()


async def test_instructions_and_history_are_mapped(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says("ok")
    image = MediaBlock(type="image", data="aGk=", mime_type="image/png")
    sound = MediaBlock(type="audio", data="aGk=", mime_type="audio/wav")
    history = [
        text_message("system", "It is Monday."),
        text_message("user", "weather?"),
        Message(
            role="assistant",
            content=(
                {"type": "reasoning", "text": "secret"},
                TextBlock(text="Let me see"),
                FunctionCallBlock(call_id="c1", name="weather", arguments={"city": "Gent"}, raw_arguments="{bro"),
                FunctionCallBlock(call_id="c2", name="picture", arguments={}),
            ),
        ),
        RESULT,
        Message(role="tool", content=(FunctionResultBlock(call_id="c2", content=(TextBlock(text="see"), image)),)),
        text_message("assistant", "cut off", partial=True),
        Message(role="user", content=(TextBlock(text="and"), image, sound)),
    ]
    await ask(client, ChatRequest(history, instructions="Be brief."))
    body = model.last_request.body
    shown = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"role": "system", "content": "It is Monday."},
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "Let me see"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Gent"}'},
        {"type": "function_call", "call_id": "c2", "name": "picture", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "see"}, shown]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "and"},
                shown,
                {"type": "input_text", "text": "[audio: audio/wav, not shown]"},
            ],
        },
    ]


async def test_only_options_that_are_given_are_sent(model: FakeResponses, client: OpenAIResponses) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    options = RunOptions(
        temperature=0.0,
        top_p=0.5,
        max_output_tokens=9,
        reasoning_effort="low",
        parallel_tool_calls=False,
        tool_choice=NamedToolChoice(name="weather"),
        store=True,
    )
    model.says("ok")
    await ask(client, ChatRequest([HI], options=options, tools=[WEATHER], response_schema=schema))
    body = model.last_request.body
    assert {name: body[name] for name in body.keys() - {"input", "tools"}} == {
        "model": "fake",
        "stream": True,
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "name": "weather"},
        "store": True,
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}},
    }


@pytest.mark.parametrize(("option", "value"), [("seed", 0), ("stop", ("END",))])
async def test_an_option_that_the_api_lacks_is_refused_by_name(
    model: FakeResponses, client: OpenAIResponses, option: str, value: Any
) -> None:
    with pytest.raises(InvalidParams, match=option):
        await ask(client, ChatRequest([HI], options=RunOptions(**{option: value})))
    assert model.requests == []


async def test_extra_body_adds_and_null_takes_away(model: FakeResponses, client: OpenAIResponses) -> None:
    model.says("ok")
    kwargs = {"extraBody": {"top_k": 5, "temperature": None}, "extraHeaders": {"x-team": "blue"}, "other": 1}
    await ask(client, ChatRequest([HI], options=RunOptions(temperature=1), client_kwargs=kwargs))
    body = model.last_request.body
    assert (body["top_k"], "temperature" in body, "other" in body) == (5, False, False)
    assert model.last_request.headers["x-team"] == "blue"


@pytest.mark.parametrize("field", ["input", "stream", "background", "conversation", "previous_response_id"])
async def test_extras_may_not_touch_what_the_conversation_depends_on(client: OpenAIResponses, field: str) -> None:
    with pytest.raises(InvalidParams, match=field):
        await ask(client, ChatRequest([HI], client_kwargs={"extraBody": {field: None}}))


async def test_an_unpaired_history_is_never_sent(model: FakeResponses, client: OpenAIResponses) -> None:
    for request in (
        ChatRequest([CALL]),
        ChatRequest([RESULT]),
        ChatRequest([CALL, HI]),
        ChatRequest([CALL, RESULT, RESULT]),
        ChatRequest([Message(role="assistant", content=CALL.content * 2)]),
        ChatRequest([CALL], conversation_id="resp_1"),
        ChatRequest([RESULT, RESULT], conversation_id="resp_1"),
    ):
        with pytest.raises(UnpairedCallsError):
            await ask(client, request)
    assert model.requests == []


async def test_what_is_sent_is_what_the_services_own_client_describes(
    model: FakeResponses, client: OpenAIResponses
) -> None:
    image = MediaBlock(type="image", data="aGk=", mime_type="image/png")
    pictures = Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=(image,)),))
    options = RunOptions(
        temperature=0.0,
        top_p=0.5,
        max_output_tokens=99,
        reasoning_effort="low",
        parallel_tool_calls=True,
        tool_choice=NamedToolChoice(name="search"),
        store=True,
    )
    history = [HI, text_message("assistant", "well"), CALL, pictures, Message(role="user", content=(image,))]
    request = ChatRequest(history, "Be brief.", options, [WEATHER, SEARCH], WEATHER.input_schema)
    model.says("ok")
    await ask(client, request)
    body = model.last_request.body
    TypeAdapter(ResponseCreateParamsStreaming).validate_python(body)
    assert body.keys() <= ResponseCreateParamsStreaming.__annotations__.keys()
