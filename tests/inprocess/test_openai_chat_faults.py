"""Everything that can go wrong at a model endpoint: each ends in one typed error, and the next call works."""

import asyncio
import email.utils
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from protocol.messages import text_message
from providers.api.ports import ChatRequest, RetryNotice, TextDelta, ask
from sidecar.config.endpoints import EndpointConfig
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
from sidecar.models.openai_chat import OpenAIChat
from sidecar.models.openai_endpoint import OpenAIEndpoint
from sidecar.models.retry import RetryPolicy
from tests.bench.fake_model import CLOSE, CUT, DONE, EOF, TC, Chunk, FakeModel, Item, Ping, Raw, Stall, T

HELLO = ChatRequest(messages=[text_message("user", "hi")])
Connect = Callable[..., OpenAIChat]


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest_asyncio.fixture
async def connect(model: FakeModel) -> AsyncIterator[Connect]:
    """Makes a client of the fake; keyword arguments are the endpoint's configuration."""
    endpoints: list[OpenAIEndpoint] = []

    def make(
        *, environ: dict[str, str] | None = None, secrets: dict[str, str] | None = None, **config: Any
    ) -> OpenAIChat:
        config = {"base_url": model.url, "max_retries": 0} | config
        endpoint = OpenAIEndpoint("local", EndpointConfig(**config), environ=environ or {}, secrets=secrets)
        endpoints.append(endpoint)
        return OpenAIChat(endpoint, "fake", retries=RetryPolicy(config["max_retries"], first_wait=0.01))

    yield make
    for endpoint in endpoints:
        await endpoint.aclose()


async def outcome(client: OpenAIChat) -> tuple[list[Any], SidecarError]:
    """What a failing call hands on, and its error."""
    updates: list[Any] = []
    stream = client.stream(HELLO)
    while True:
        try:
            updates.append(await anext(stream))
        except SidecarError as error:
            return updates, error


async def works_again(model: FakeModel, client: OpenAIChat) -> bool:
    model.says("fine")
    return (await ask(client, HELLO)).text == "fine"


TEXT = [T("Your total is 4")]
ARGUMENTS = [TC(0, "c1", "order", '{"dish":')]


@pytest.mark.parametrize("before", [[], TEXT, ARGUMENTS], ids=["before-anything", "mid-text", "mid-arguments"])
@pytest.mark.parametrize(
    "ending",
    [
        [EOF],
        [DONE],
        [CLOSE],
        [CUT],
        [Raw(b"data: {nonsense\n\n"), DONE],
        [Raw(b"\xff\xfe\x00 garbage \n\n"), EOF],
        [Chunk([1, 2]), DONE],
        [Chunk({"error": {"message": "overloaded", "code": 503}}), EOF],
        [Raw(b"data: [DO"), CUT],
    ],
    ids=["eof", "done", "close", "cut", "no-json", "garbage", "no-object", "error", "half-a-line"],
)
async def test_a_stream_without_an_ending_is_one_retryable_error(
    model: FakeModel, connect: Connect, before: list[Item], ending: list[Item]
) -> None:
    client = connect()
    model.says(*before, *ending)
    updates, error = await outcome(client)
    assert isinstance(error, ModelBadStream | ModelUnavailable)
    assert error.wire()["data"]["retryable"]
    assert updates == ([TextDelta("Your total is 4")] if before is TEXT else [])
    assert await works_again(model, client)


@pytest.mark.parametrize("show", [FakeModel.shows, lambda model: model.says(Raw(b"<html>hello"), DONE)])
async def test_a_web_page_is_no_answer(model: FakeModel, connect: Connect, show: Callable[[FakeModel], None]) -> None:
    show(model)
    assert isinstance((await outcome(connect()))[1], ModelBadStream)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"choices":[{"message":{"content":"x"}}]}', b'{"choices":'])
async def test_a_document_without_an_ending_is_no_answer(model: FakeModel, connect: Connect, body: bytes) -> None:
    model.says(Raw(body), EOF)
    assert isinstance((await outcome(connect()))[1], ModelBadStream)


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (400, {}, ModelBadRequest),
        (400, {"code": "context_length_exceeded"}, ContextWindowExceeded),
        (400, {"type": "exceed_context_size_error", "code": 400}, ContextWindowExceeded),
        (400, {"message": "This model's maximum context length is 4096 tokens"}, ContextWindowExceeded),
        (400, {"code": "content_filter"}, ContentFiltered),
        (401, {}, ModelAuth),
        (402, {}, ModelQuota),
        (403, {}, ModelAuth),
        (404, {"code": "model_not_found"}, ModelNotFound),
        (404, {}, ModelBadRequest),
        (408, {}, ModelTimeout),
        (409, {}, ModelUnavailable),
        (413, {}, ModelBadRequest),
        (422, {}, ModelBadRequest),
        (429, {}, ModelRateLimited),
        (429, {"code": "insufficient_quota"}, ModelQuota),
        (500, {}, ModelUnavailable),
        (502, {}, ModelUnavailable),
        (503, {}, ModelUnavailable),
    ],
)
async def test_statuses_mean_what_the_contract_says_and_bodies_stay_here(
    model: FakeModel, connect: Connect, status: int, said: dict[str, Any], expected: type[SidecarError]
) -> None:
    client = connect(api_key_env="KEY", environ={"KEY": "sk-canary"})
    model.fails(status, error={"message": "BODY-CANARY"} | said)
    updates, error = await outcome(client)
    assert (type(error), updates) == (expected, [])
    assert error.wire()["data"]["httpStatus"] == status
    told = str(error.wire())
    assert "CANARY" not in told
    assert "sk-canary" not in told
    assert await works_again(model, client)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again_and_said(model: FakeModel, connect: Connect, status: int) -> None:
    model.fails(status, times=2)
    model.says("at last")
    updates = [update async for update in connect(max_retries=2).stream(HELLO)]
    assert [update.attempt for update in updates if isinstance(update, RetryNotice)] == [1, 2]
    assert TextDelta("at last") in updates


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_will_not_pass_is_asked_once(model: FakeModel, connect: Connect, status: int) -> None:
    model.fails(status)
    await outcome(connect(max_retries=2))
    assert len(model.requests) == 1


async def test_retries_stop_at_the_cap(model: FakeModel, connect: Connect) -> None:
    model.fails(500, times=3)
    updates, error = await outcome(connect(max_retries=2))
    assert (len(updates), len(model.requests), type(error)) == (2, 3, ModelUnavailable)


@pytest.mark.parametrize("ending", [EOF, DONE, CUT])
async def test_an_incomplete_stream_is_tried_again_only_if_nothing_was_handed_on(
    model: FakeModel, connect: Connect, ending: Item
) -> None:
    client = connect(max_retries=1)
    model.says(ending)
    model.says("whole")
    assert (await ask(client, HELLO)).text == "whole"
    model.says("par", ending)
    updates, error = await outcome(client)
    assert (updates, type(error)) == ([TextDelta("par")], ModelBadStream)
    assert len(model.requests) == 3


async def test_a_refused_request_is_never_sent_again_in_another_shape(model: FakeModel, connect: Connect) -> None:
    model.fails(400, error={"message": "unknown field stream_options"})
    await outcome(connect(max_retries=2))
    assert len(model.requests) == 1


async def test_a_short_wait_that_is_asked_for_is_kept(model: FakeModel, connect: Connect) -> None:
    model.fails(429, retry_after=0.3)
    model.says("ok")
    started = time.monotonic()
    await ask(connect(max_retries=1), HELLO)
    assert 0.3 <= time.monotonic() - started < 3


@pytest.mark.parametrize("after", [0, "garbage", "-5", email.utils.formatdate(0), "nan"])
async def test_a_wait_that_is_over_or_nonsense_delays_nothing(
    model: FakeModel, connect: Connect, after: float | str
) -> None:
    model.fails(429, retry_after=after)
    model.says("ok")
    async with asyncio.timeout(2):
        assert (await ask(connect(max_retries=1), HELLO)).text == "ok"


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_long_wait_is_the_hosts_to_decide(model: FakeModel, connect: Connect, as_date: bool) -> None:
    after = email.utils.formatdate(time.time() + 3600, usegmt=True) if as_date else 3600
    model.fails(429, retry_after=after)
    updates, error = await outcome(connect(max_retries=2))
    assert updates == []
    assert 3_500_000 <= error.wire()["data"]["retryAfterMs"] <= 3_600_000


@pytest.mark.parametrize("hangs", [lambda model: model.hangs(), lambda model: model.says(T("a"), Stall())])
async def test_silence_ends_by_the_idle_limit_and_closes_the_socket(
    model: FakeModel, connect: Connect, hangs: Callable[[FakeModel], None]
) -> None:
    client = connect(idle_timeout_ms=300, max_retries=2)
    assert await works_again(model, client)  # the first call of a process imports what it needs
    hangs(model)
    started = time.monotonic()
    _, error = await outcome(client)
    assert isinstance(error, ModelTimeout)
    assert error.wire()["data"]["retryable"]
    assert 0.25 <= time.monotonic() - started < 3
    await model.quiet(within=1)
    assert len(model.requests) == 2


async def test_comments_are_no_sign_of_life(model: FakeModel, connect: Connect) -> None:
    model.says(T("a"), Ping(0.05))
    async with asyncio.timeout(5):
        assert isinstance((await outcome(connect(idle_timeout_ms=400)))[1], ModelTimeout)


async def test_a_stream_that_never_ends_ends_by_the_total_limit(model: FakeModel, connect: Connect) -> None:
    model.otherwise(lambda _: [item for _ in range(200) for item in (T("x"), Stall(0.02))])
    updates, error = await outcome(connect(total_timeout_ms=600))
    assert isinstance(error, ModelTimeout)
    assert "total_timeout_ms" in error.message
    assert updates


async def test_an_endpoint_that_cannot_be_reached_in_time_is_a_time_out(connect: Connect) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for taken in (first, second):  # the queue of who waits to be accepted is full now
            taken.setblocking(False)
            taken.connect_ex(full.getsockname())
        client = connect(base_url=f"http://127.0.0.1:{full.getsockname()[1]}/v1", connect_timeout_ms=300)
        async with asyncio.timeout(10):
            _, error = await outcome(client)

    assert isinstance(error, ModelTimeout)
    assert error.wire()["data"]["retryable"]


async def test_an_endpoint_that_is_not_there_is_named(connect: Connect) -> None:
    client = connect(base_url="http://user:secret@127.0.0.1:9/v1")
    _, error = await outcome(client)
    assert isinstance(error, ModelUnavailable)
    assert "127.0.0.1:9" in error.message
    assert "secret" not in error.message


async def test_a_name_that_does_not_resolve_is_said(connect: Connect) -> None:
    _, error = await outcome(connect(base_url="http://no-such-host.invalid/v1"))
    assert isinstance(error, ModelUnavailable)


async def test_an_endpoint_without_tls_is_unavailable(model: FakeModel, connect: Connect) -> None:
    _, error = await outcome(connect(base_url=model.url.replace("http:", "https:")))
    assert isinstance(error, ModelUnavailable)
    assert "TLS" in error.message


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_and_the_key_stays(model: FakeModel, connect: Connect, status: int) -> None:
    async with FakeModel() as elsewhere:
        model.fails(status, headers={"location": f"{elsewhere.url}/chat/completions"})
        _, error = await outcome(connect(api_key_env="KEY", environ={"KEY": "sk-canary"}))
        assert isinstance(error, ModelUnavailable)
        assert "redirect" in error.message
        assert elsewhere.requests == elsewhere.other_requests == []


async def test_dropped_connections_are_tried_again(model: FakeModel, connect: Connect) -> None:
    model.drops()
    model.says("ok")
    assert (await ask(connect(max_retries=1), HELLO)).text == "ok"


async def test_the_keys_come_from_where_the_configuration_says(model: FakeModel, connect: Connect) -> None:
    prints = (sys.executable, "-c", "print('sk-printed')")
    clients = {
        "sk-env": connect(api_key_env="KEY", environ={"KEY": "sk-env"}),
        "sk-printed": connect(api_key_command=prints),
        "sk-secret": connect(api_key_secret="mine", secrets={"mine": "sk-secret"}),
        "none": connect(environ={"OPENAI_API_KEY": "sk-not-for-others"}),
    }
    for key, client in clients.items():
        model.says("ok")
        await ask(client, HELLO)
        assert model.last_request.headers["authorization"] == f"Bearer {key}"


async def test_what_the_environment_holds_for_openai_does_not_go_elsewhere(
    model: FakeModel, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: header-canary")
    model.says("ok")
    await ask(connect(), HELLO)
    assert "canary" not in str(model.last_request.headers).lower()


@pytest.mark.parametrize(
    "config",
    [
        {"api_key_secret": "mine"},
        {"api_key_command": (sys.executable, "-c", "raise SystemExit(3)")},
        {"api_key_command": (sys.executable, "-c", "pass")},
        {"api_key_command": ("/no/such/program",)},
        {"base_url": "https://api.openai.com/v1", "api_key_env": "KEY"},
    ],
)
async def test_a_key_that_is_missing_is_said_before_anything_is_sent(
    model: FakeModel, connect: Connect, config: dict[str, Any]
) -> None:
    assert isinstance((await outcome(connect(**config)))[1], ModelAuth)
    assert model.requests == []


async def test_a_refused_key_is_fetched_anew_for_the_next_call(
    model: FakeModel, connect: Connect, tmp_path: Any
) -> None:
    counter = str(tmp_path / "count")
    script = f"with open({counter!r}, 'a') as f: f.write('x'); print('k', f.tell(), sep='')"
    client = connect(api_key_command=(sys.executable, "-W", "ignore", "-c", script))
    model.fails(401)
    await outcome(client)
    assert await works_again(model, client)
    assert [request.headers["authorization"] for request in model.requests] == ["Bearer k1", "Bearer k2"]
