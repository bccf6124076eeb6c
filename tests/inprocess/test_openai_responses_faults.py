"""What can go wrong at a Responses endpoint: each ends in one typed error, and the next call works.

What both of OpenAI's APIs share (connections, keys, redirects, waits) `test_openai_chat_faults` holds.
"""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from protocol.agents import RunOptions
from protocol.messages import FunctionResultBlock, Message, text_message
from providers.api.ports import ChatRequest, ReasoningDelta, RetryNotice, TextDelta, ask
from sidecar.config.endpoints import BUILT_IN, EndpointConfig
from sidecar.errors import (
    ContentFiltered,
    ContextWindowExceeded,
    ModelAuth,
    ModelBadRequest,
    ModelBadStream,
    ModelNotFound,
    ModelQuota,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    SidecarError,
)
from sidecar.models.openai_endpoint import OpenAIEndpoint
from sidecar.models.openai_responses import OpenAIResponses
from sidecar.models.registry import Models
from sidecar.models.retry import RetryPolicy
from tests.bench.fake_model import CLOSE, CUT, DONE, EOF, FakeModel, Raw, Stall, Think
from tests.bench.fake_responses import FakeResponses
from tests.bench.response_script import Call, End, Event, Item

HI = text_message("user", "hi")
HELLO = ChatRequest(messages=[HI])
Connect = Callable[..., OpenAIResponses]


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeResponses]:
    async with FakeResponses() as fake:
        yield fake


@pytest_asyncio.fixture
async def connect(model: FakeResponses) -> AsyncIterator[Connect]:
    """Makes a client of the fake; keyword arguments are the endpoint's configuration."""
    endpoints: list[OpenAIEndpoint] = []

    def make(*, environ: dict[str, str] | None = None, **config: Any) -> OpenAIResponses:
        config = {"type": "openai_responses", "base_url": model.url, "max_retries": 0} | config
        endpoint = OpenAIEndpoint("service", EndpointConfig(**config), environ=environ or {})
        endpoints.append(endpoint)
        return OpenAIResponses(endpoint, "fake", retries=RetryPolicy(config["max_retries"], first_wait=0.01))

    yield make
    for endpoint in endpoints:
        await endpoint.aclose()


async def outcome(client: OpenAIResponses, request: ChatRequest = HELLO) -> tuple[list[Any], SidecarError]:
    """What a failing call hands on, and its error."""
    updates: list[Any] = []
    stream = client.stream(request)
    while True:
        try:
            updates.append(await anext(stream))
        except SidecarError as error:
            return updates, error


async def works_again(model: FakeResponses, client: OpenAIResponses) -> bool:
    model.says("fine")
    return (await ask(client, HELLO)).text == "fine"


def failed(code: str | None, message: str = "CANARY") -> End:
    return End("failed", error={"code": code, "message": message})


def error(code: str | None, message: str = "CANARY", kind: str = "error") -> Event:
    return Event({"type": kind, "code": code, "message": message, "param": None, "sequence_number": 3})


@pytest.mark.parametrize("before", [[], ["Your total is 4"], [Call("c1", "order")]], ids=["start", "text", "call"])
@pytest.mark.parametrize(
    "ending",
    [
        [EOF], [DONE], [CLOSE], [CUT], [Raw(b"data: {nonsense\n\n"), EOF], [Raw(b"\xff\xfe\x00 garbage \n\n"), EOF],
        [Event([1, 2])], [Raw(b'data: {"type":"response.comp'), CUT], [End("cancelled")],
    ],
    ids=["eof", "done", "close", "cut", "no-json", "garbage", "no-object", "half-a-line", "cancelled"],
)  # fmt: skip
async def test_a_stream_without_an_ending_is_one_retryable_error(
    model: FakeResponses, connect: Connect, before: list[Item], ending: list[Item]
) -> None:
    client = connect()
    model.says(*before, *ending)
    updates, problem = await outcome(client)
    assert isinstance(problem, ModelBadStream)
    assert problem.wire()["data"]["retryable"]
    assert updates == ([TextDelta("Your total is 4")] if "Your total is 4" in before else [])
    assert await works_again(model, client)


@pytest.mark.parametrize("make", [failed, error], ids=["failed", "error"])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("server_error", ModelUnavailable),
        (None, ModelUnavailable),
        ("rate_limit_exceeded", ModelRateLimited),
        ("insufficient_quota", ModelQuota),
        ("context_length_exceeded", ContextWindowExceeded),
        ("image_content_policy_violation", ContentFiltered),
        ("bio_policy", ContentFiltered),
        ("invalid_prompt", ModelBadRequest),
        ("invalid_image_url", ModelBadRequest),
        ("image_too_large", ModelBadRequest),
        ("model_not_found", ModelNotFound),
        ("invalid_api_key", ModelAuth),
    ],
)
async def test_errors_inside_the_stream_are_typed_and_their_words_stay_here(
    model: FakeResponses, connect: Connect, make: Callable[..., Item], code: str | None, expected: type[SidecarError]
) -> None:
    client = connect()
    model.says("par", make(code))
    updates, problem = await outcome(client)
    assert (updates, type(problem)) == ([TextDelta("par")], expected)
    assert "CANARY" not in str(problem.wire())
    assert await works_again(model, client)


async def test_an_error_that_is_wrapped_is_read_as_well(model: FakeResponses, connect: Connect) -> None:
    wrapped = {"error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow down"}}
    for event in (wrapped, wrapped | {"type": "error"}):
        model.says(Event(event))
        assert isinstance((await outcome(connect()))[1], ModelRateLimited)
    model.completes(wrapped)
    assert isinstance((await outcome(connect()))[1], ModelRateLimited)


@pytest.mark.parametrize("ending", [EOF, CUT, failed("server_error"), error("rate_limit_exceeded")])
async def test_an_attempt_is_made_again_only_if_nothing_was_handed_on(
    model: FakeResponses, connect: Connect, ending: Item
) -> None:
    client = connect(max_retries=1)
    model.says(Call("c1", "order"), ending)
    model.says("whole")
    updates = [update async for update in client.stream(HELLO)]
    assert [type(update) for update in updates[:2]] == [RetryNotice, TextDelta]
    for item, expected in (("par", TextDelta("par")), (Think("hm"), ReasoningDelta("hm"))):
        model.says(item, ending)
        assert (await outcome(client))[0] == [expected]
    assert len(model.requests) == 4


async def test_a_malformed_prompt_is_asked_once(model: FakeResponses, connect: Connect) -> None:
    model.says(failed("invalid_prompt"))
    await outcome(connect(max_retries=2))
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (400, {}, ModelBadRequest),
        (400, {"code": "context_length_exceeded"}, ContextWindowExceeded),
        (401, {}, ModelAuth),
        (404, {"code": "model_not_found"}, ModelNotFound),
        (429, {}, ModelRateLimited),
        (429, {"code": "insufficient_quota"}, ModelQuota),
        (500, {}, ModelUnavailable),
    ],
)
async def test_statuses_mean_what_they_mean_for_chat_completions(
    model: FakeResponses, connect: Connect, status: int, said: dict[str, Any], expected: type[SidecarError]
) -> None:
    client = connect()
    model.fails(status, error=said)
    updates, problem = await outcome(client)
    assert (updates, type(problem)) == ([], expected)
    assert await works_again(model, client)


@pytest.mark.parametrize("earlier", ["resp_gone", "conv_gone"])
async def test_a_conversation_that_is_gone_is_said(model: FakeResponses, connect: Connect, earlier: str) -> None:
    _, problem = await outcome(connect(max_retries=2), ChatRequest([HI], conversation_id=earlier))
    assert isinstance(problem, ModelBadRequest)
    assert "does not keep the conversation" in problem.message
    assert len(model.requests) == 1


async def test_what_was_not_stored_cannot_be_gone_on_from(model: FakeResponses, connect: Connect) -> None:
    client = connect()
    model.says("ok")
    await ask(client, ChatRequest([HI], options=RunOptions(store=False)))
    assert isinstance((await outcome(client, ChatRequest([HI], conversation_id="resp_1")))[1], ModelBadRequest)


async def test_a_call_that_the_service_waits_for_must_be_answered(model: FakeResponses, connect: Connect) -> None:
    client = connect()
    model.says(Call("c1", "order"))
    await ask(client, HELLO)
    assert isinstance((await outcome(client, ChatRequest([HI], conversation_id="resp_1")))[1], ModelBadRequest)
    other = Message(role="tool", content=(FunctionResultBlock(call_id="c2", content=()),))
    assert isinstance((await outcome(client, ChatRequest([other], conversation_id="resp_1")))[1], ModelBadRequest)


@pytest.mark.parametrize("pieces", [[Stall()], ["a", Stall()]], ids=["at-once", "mid-text"])
async def test_silence_ends_by_the_idle_limit(model: FakeResponses, connect: Connect, pieces: list[Item]) -> None:
    client = connect(idle_timeout_ms=300, max_retries=2)
    assert await works_again(model, client)  # the first call of a process imports what it needs
    model.says(*pieces)
    started = time.monotonic()
    _, problem = await outcome(client)
    assert isinstance(problem, ModelTimeout)
    assert 0.25 <= time.monotonic() - started < 3
    await model.quiet(within=1)


async def test_a_web_page_is_no_answer(model: FakeResponses, connect: Connect) -> None:
    model.shows()
    assert isinstance((await outcome(connect()))[1], ModelBadStream)


@pytest.mark.parametrize("status", ["in_progress", "queued", None])
async def test_a_document_that_is_not_complete_is_no_answer(
    model: FakeResponses, connect: Connect, status: str | None
) -> None:
    model.completes({"object": "response", "id": "resp_1", "status": status, "output": []})
    assert isinstance((await outcome(connect()))[1], ModelBadStream)


async def test_an_endpoint_without_this_api_is_a_bad_request(connect: Connect) -> None:
    async with FakeModel() as chat_only:
        _, problem = await outcome(connect(base_url=chat_only.url))
        assert isinstance(problem, ModelBadRequest)
        assert "and type" in problem.message


async def test_the_built_in_endpoint_answers_under_its_name(model: FakeResponses) -> None:
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-env"})
    model.says("hello")
    answer = await ask(models.get("openai-responses:gpt-5"), HELLO)
    assert (answer.text, model.last_request.body["model"]) == ("hello", "gpt-5")
    assert model.last_request.headers["authorization"] == "Bearer sk-env"
    await models.aclose()
    await model.quiet()
