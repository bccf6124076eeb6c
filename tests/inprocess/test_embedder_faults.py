"""F6: whatever an embeddings endpoint does, it ends in one EmbedderError, in time, and the next call works."""

import asyncio
import email.utils
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from providers.api.memory import EmbedderError
from sidecar.config.endpoints import EndpointConfig
from sidecar.models.openai_embeddings import OpenAIEmbedder
from sidecar.models.openai_endpoint import OpenAIEndpoint
from sidecar.models.retry import RetryPolicy
from tests.bench.fake_embeddings import FakeEmbeddings, answers
from tests.bench.fake_model import CLOSE, CUT, EOF, Raw, Reply, Stall

KEY = "sk-canary"
LIMIT_S = 0.5
"""Of the calls that are to reach it."""
SLACK_S = 5.0
"""What a loaded machine may take besides."""

Connect = Callable[..., OpenAIEmbedder]


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeEmbeddings]:
    async with FakeEmbeddings() as fake:
        yield fake


@pytest_asyncio.fixture
async def elsewhere() -> AsyncIterator[FakeEmbeddings]:
    """Another host, which must never hear of the key."""
    async with FakeEmbeddings() as fake:
        yield fake
    assert fake.requests == fake.other_requests == []


@pytest_asyncio.fixture
async def connect(model: FakeEmbeddings) -> AsyncIterator[Connect]:
    """Makes an embedder of the fake; keyword arguments are the endpoint's configuration."""
    endpoints: list[OpenAIEndpoint] = []

    def make(*, limit_s: float = 20.0, **config: Any) -> OpenAIEmbedder:
        config = {"base_url": model.url, "max_retries": 1, "api_key_env": "KEY"} | config
        endpoint = OpenAIEndpoint("mine", EndpointConfig(**config), environ={"KEY": KEY})
        endpoints.append(endpoint)
        retries = RetryPolicy(endpoint.config.max_retries, first_wait=0.01)
        return OpenAIEmbedder(endpoint, "m", query_timeout_s=limit_s, retries=retries)

    yield make
    for endpoint in endpoints:
        await endpoint.aclose()


@dataclass(frozen=True)
class Fault:
    """What the endpoint does, and what must come of it."""

    reply: Reply
    says: str
    """What the error says, as a pattern."""
    tries: int = 2
    limit_s: float = 20.0


def broken(*pieces: Any) -> Reply:
    """An answer that goes wrong in its middle."""
    return Reply([Raw(b'{"data":[{"index":0,"embedding":[0.1,'), *pieces], headers={"content-type": "application/json"})


def refuses(status: int, *, code: str = "", **headers: str) -> Reply:
    """An answer that holds words which must stay here."""
    reply = answers({"error": {"message": f"BODY-CANARY {code}", "code": code}}, status=status)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(reply.pieces, status, reply.headers | named)


FAULTS = {
    "silence": Fault(Reply(before_head=[Stall()]), "within 0.5 s", tries=1, limit_s=LIMIT_S),
    "a stall in the middle": Fault(broken(Stall()), "within 0.5 s", tries=1, limit_s=LIMIT_S),
    "one byte at a time": Fault(broken(*[Raw(b"1"), Stall(0.02)] * 500), "within 0.5 s", tries=1, limit_s=LIMIT_S),
    "a reset": Fault(Reply(before_head=[CUT]), "cannot be reached"),
    "a reset in the middle": Fault(broken(CUT), "connection broke"),
    "a connection that closes": Fault(broken(CLOSE), "connection broke"),
    "half an answer": Fault(broken(EOF), "no JSON", tries=1),
    "a web page": Fault(
        Reply([Raw(b"<html>BODY-CANARY"), EOF], 200, {"content-type": "text/html"}), "no JSON", tries=1
    ),
    "an empty body": Fault(Reply([EOF]), "no JSON", tries=1),
    "an endless body": Fault(broken(*[Raw(b"1" * (1 << 20))] * 40, EOF), "more than 32 MiB", tries=1),
    "too few vectors": Fault(answers({"data": []}), "0 vectors for 1", tries=1),
    "429": Fault(refuses(429, retry_after="0"), "429: too many requests"),
    "429, try in an hour": Fault(refuses(429, retry_after="3600"), "429: too many requests", tries=1),
    "429, try after the limit": Fault(refuses(429, retry_after="30"), "429: too many requests", tries=1),
    "429, no quota": Fault(refuses(429, code="insufficient_quota"), "no quota left", tries=1),
    "500": Fault(refuses(500), "answered 500"),
    "503, try at a date": Fault(refuses(503, retry_after=email.utils.formatdate(0)), "answered 503"),
    "400": Fault(refuses(400), "malformed", tries=1),
    "400, too long": Fault(refuses(400, code="context_length_exceeded"), "longer than the model's context", tries=1),
    "401": Fault(refuses(401), "refused the key", tries=1),
    "404": Fault(refuses(404, code="model_not_found"), "no model 'm'", tries=1),
}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in FAULTS.items()])
async def test_a_fault_is_one_error_in_time(model: FakeEmbeddings, connect: Connect, fault: Fault) -> None:
    embedder = connect(limit_s=fault.limit_s)
    await connect().embed(["the first call of a process imports what it needs"], role="query")
    for _ in range(fault.tries):
        model.replies(fault.reply)
    started = time.monotonic()

    with pytest.raises(EmbedderError, match=fault.says) as caught:
        await embedder.embed(["words"], role="query")

    assert time.monotonic() - started < (fault.limit_s if fault.limit_s == LIMIT_S else 0) + SLACK_S
    assert "CANARY" not in str(caught.value).upper()
    assert len(model.requests) == 1 + fault.tries
    assert await connect().embed(["words"], role="query")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_and_the_key_stays(
    model: FakeEmbeddings, elsewhere: FakeEmbeddings, connect: Connect, status: int
) -> None:
    model.fails(status, headers={"location": f"{elsewhere.url}/embeddings"})

    with pytest.raises(EmbedderError, match="redirect"):
        await connect().embed(["words"], role="query")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("http://user:secret@127.0.0.1:9/v1", r"127\.0\.0\.1:9.*nothing listens there"),
        ("http://no-such-host.invalid/v1", "cannot be reached"),
        ("no TLS", "TLS"),
    ],
)
async def test_an_endpoint_that_is_not_there_is_named(
    model: FakeEmbeddings, connect: Connect, address: str, says: str
) -> None:
    embedder = connect(base_url=model.url.replace("http:", "https:") if address == "no TLS" else address)

    with pytest.raises(EmbedderError, match=says) as caught:
        await embedder.embed(["words"], role="query")

    assert "secret" not in str(caught.value)


async def test_an_endpoint_that_cannot_be_reached_in_time_is_given_up(connect: Connect) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for taken in (first, second):  # the queue of who waits to be accepted is full now
            taken.setblocking(False)
            taken.connect_ex(full.getsockname())
        embedder = connect(base_url=f"http://127.0.0.1:{full.getsockname()[1]}/v1", connect_timeout_ms=300)
        async with asyncio.timeout(10):
            with pytest.raises(EmbedderError, match="connect_timeout_ms"):
                await embedder.embed(["words"], role="query")


async def test_a_missing_key_is_said_before_anything_is_sent(connect: Connect) -> None:
    embedder = connect(base_url="https://api.openai.com/v1", api_key_env="NOT_SET")

    with pytest.raises(EmbedderError, match="set NOT_SET"):
        await embedder.embed(["words"], role="query")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again(model: FakeEmbeddings, connect: Connect, status: int) -> None:
    model.fails(status)

    assert await connect().embed(["words"], role="query")
    assert len(model.requests) == 2


async def test_silence_and_cancellation_close_the_socket(model: FakeEmbeddings, connect: Connect) -> None:
    """BR-16(e), BR-05(a): nothing is left of a call that stalls, whoever ends it."""
    model.hangs()
    model.hangs()

    with pytest.raises(EmbedderError):
        await connect(limit_s=LIMIT_S).embed(["words"], role="query")
    await model.quiet(within=SLACK_S)
    cancelled = asyncio.create_task(connect().embed(["words"], role="query"))
    await model.received(2)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled

    await model.quiet(within=SLACK_S)
    assert all(request.hung_up for request in model.requests)


async def test_nothing_is_left_of_many_calls_that_stall(model: FakeEmbeddings, connect: Connect) -> None:
    embedder = connect(limit_s=LIMIT_S)
    model.otherwise(lambda _: Reply(before_head=[Stall()]))
    await asyncio.gather(*(embedder.embed([str(n)], role="query") for n in range(20)), return_exceptions=True)

    await model.quiet(within=SLACK_S)
    model.otherwise(model.embedded)
    assert await embedder.embed(["words"], role="query")


async def test_what_the_environment_holds_for_openai_does_not_go_elsewhere(
    model: FakeEmbeddings, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-openai")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: header-openai")

    await connect().embed(["words"], role="query")

    sent = model.last_request.headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert not [value for value in sent.values() if value.endswith("-openai")]
