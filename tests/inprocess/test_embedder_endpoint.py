"""The embeddings API of an endpoint: what is sent, what is made of the answer, and how it is found by name."""

import asyncio
import math
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from providers.api.memory import Embedder, EmbedderError, Vector
from sidecar.config.endpoints import BUILT_IN, EndpointConfig
from sidecar.errors import ConfigInvalid, ModelNotFound
from sidecar.models.embedders import registry
from sidecar.models.embedders.registry import Embedders
from sidecar.models.openai_embeddings import MAX_BATCH_BYTES, MAX_BATCH_TEXTS, MAX_TEXT_BYTES
from tests.bench.fake_embeddings import FakeEmbeddings, answers, meaning

SETTING = "mine:fake-embeddings"


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeEmbeddings]:
    async with FakeEmbeddings() as fake:
        yield fake


@pytest_asyncio.fixture
async def embedders(model: FakeEmbeddings) -> AsyncIterator[Embedders]:
    endpoints = BUILT_IN | {"mine": EndpointConfig(base_url=model.url, api_key_env="KEY")}
    found = Embedders(endpoints, environ={"KEY": "sk-canary"})
    yield found
    await found.aclose()
    await model.quiet()


@pytest_asyncio.fixture
async def embedder(embedders: Embedders) -> Embedder:
    found = await embedders.get(SETTING)
    assert found is not None
    return found


def numbers(vectors: Sequence[Vector]) -> list[tuple[float, ...]]:
    return [struct.unpack(f"<{len(vector) // 4}f", vector) for vector in vectors]


def rows(*embeddings: Any) -> dict[str, Any]:
    """A body with these embeddings."""
    return {"data": [{"index": index, "embedding": embedding} for index, embedding in enumerate(embeddings)]}


@pytest.mark.parametrize("as_base64", [False, True])
async def test_each_text_gets_its_own_vector(model: FakeEmbeddings, embedder: Embedder, as_base64: bool) -> None:
    model.as_base64 = as_base64

    found = numbers(await embedder.embed(["no spicy food", "辣的", "no spicy food"], role="passage"))

    assert found == [pytest.approx(meaning(text), abs=1e-6) for text in ("no spicy food", "辣的", "no spicy food")]
    assert model.texts == ["no spicy food", "辣的"]
    assert model.last_request.body["model"] == "fake-embeddings"
    assert model.last_request.headers["authorization"] == "Bearer sk-canary"


async def test_vectors_are_named_for_model_and_host_not_for_the_endpoints_name(
    model: FakeEmbeddings, embedder: Embedder
) -> None:
    assert embedder.name == f"openai:fake-embeddings@{model.url.split('/')[2]}"
    openai = await Embedders(BUILT_IN, environ={}).get("openai:text-embedding-3-small")
    assert openai is not None
    assert openai.name == "openai:text-embedding-3-small@api.openai.com"


async def test_credentials_of_an_address_are_no_part_of_the_name() -> None:
    endpoints = {"mine": EndpointConfig(base_url="https://user:secret@embed.example/v1")}
    found = await Embedders(endpoints, environ={}).get("mine:m")
    assert found is not None
    assert found.name == "openai:m@embed.example"


async def test_vectors_are_made_unit_length(model: FakeEmbeddings, embedder: Embedder) -> None:
    model.replies(answers(rows([3, 4, 0])))

    assert numbers(await embedder.embed(["a"], role="query")) == [pytest.approx((0.6, 0.8, 0.0))]


async def test_vectors_are_put_in_the_order_of_their_index(model: FakeEmbeddings, embedder: Embedder) -> None:
    body = rows([1, 0], [0, 1])
    body["data"].reverse()
    model.replies(answers(body))

    assert numbers(await embedder.embed(["a", "b"], role="query")) == [(1, 0), (0, 1)]


async def test_many_texts_go_in_batches_of_bounded_count(model: FakeEmbeddings, embedder: Embedder) -> None:
    texts = [f"text {number}" for number in range(2 * MAX_BATCH_TEXTS + 1)]

    found = await embedder.embed(texts, role="passage")

    assert [len(request.body["input"]) for request in model.requests] == [MAX_BATCH_TEXTS, MAX_BATCH_TEXTS, 1]
    assert numbers(found)[-1] == pytest.approx(meaning(texts[-1]), abs=1e-6)


async def test_long_texts_go_in_batches_of_bounded_bytes_and_are_cut(model: FakeEmbeddings, embedder: Embedder) -> None:
    await embedder.embed([f"{number} " + "辣" * 5000 for number in range(6)], role="passage")

    sent = [[len(text.encode()) for text in request.body["input"]] for request in model.requests]
    assert max(length for batch in sent for length in batch) <= MAX_TEXT_BYTES
    assert max(sum(batch) for batch in sent) <= MAX_BATCH_BYTES
    assert [len(batch) for batch in sent] == [4, 2]


async def test_passages_go_one_batch_at_a_time_and_queries_pass_them(model: FakeEmbeddings, embedder: Embedder) -> None:
    model.hangs()
    passages = [asyncio.create_task(embedder.embed([text], role="passage")) for text in ("first", "second")]
    await model.received(1)

    await embedder.embed(["query"], role="query")

    assert model.texts == ["first", "query"]
    passages[0].cancel()
    await passages[1]
    assert model.texts == ["first", "query", "second"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b"])
async def test_blank_text_is_never_sent(model: FakeEmbeddings, embedder: Embedder, text: str) -> None:
    """BR-21."""
    with pytest.raises(EmbedderError):
        await embedder.embed(["fine", text], role="query")

    assert model.requests == []


async def test_nothing_to_embed_asks_nobody(model: FakeEmbeddings, embedder: Embedder) -> None:
    assert list(await embedder.embed([], role="passage")) == []
    assert model.requests == []


async def test_broken_characters_are_mended_before_they_are_sent(model: FakeEmbeddings, embedder: Embedder) -> None:
    await embedder.embed(["half \ud83d pair", "a\0b"], role="query")

    assert model.texts == ["half \ufffd pair", "a\ufffdb"]


async def test_another_dimension_than_before_is_refused(model: FakeEmbeddings, embedder: Embedder) -> None:
    await embedder.embed(["a"], role="passage")
    model.dimension = 32

    with pytest.raises(EmbedderError, match=r"32 numbers, and of 64 before"):
        await embedder.embed(["b"], role="passage")

    model.dimension = 64
    assert math.dist(numbers(await embedder.embed(["b"], role="passage"))[0], meaning("b")) < 1e-6


async def test_two_dimensions_in_one_answer_are_refused(model: FakeEmbeddings, embedder: Embedder) -> None:
    model.replies(answers(rows([1, 0], [1, 0, 0])))

    with pytest.raises(EmbedderError, match="3 numbers, and of 2"):
        await embedder.embed(["a", "b"], role="passage")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        {"data": None},
        {"data": [1, 2]},
        rows([1, 0]),
        rows([1, 0], [0, 1], [1, 1]),
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 7, "embedding": [1]}]},
        {"data": [{"index": "0", "embedding": [1]}, {"index": 1, "embedding": [1]}]},
        {"data": [{"index": 0}, {"index": 1, "embedding": [1]}]},
        rows([1, 0], []),
        rows([1, 0], [0, 0]),
        rows([1, 0], ["CANARY", 0]),
        rows([1, 0], [None, 0]),
        rows([1, 0], {"a": 1}),
        rows([1, 0], "CANARY!"),
        rows([1, 0], "YWJj"),
    ],
)
async def test_what_is_no_list_of_vectors_is_an_error_that_repeats_nothing(
    model: FakeEmbeddings, embedder: Embedder, body: Any
) -> None:
    model.replies(answers(body))

    with pytest.raises(EmbedderError, match="did not answer with vectors") as caught:
        await embedder.embed(["a", "b"], role="query")

    assert "CANARY" not in str(caught.value)
    assert len(model.requests) == 1
    assert await embedder.embed(["a", "b"], role="query")


async def test_one_setting_is_one_embedder(embedders: Embedders) -> None:
    assert await embedders.get(SETTING) is await embedders.get(SETTING)
    assert await embedders.get("none") is None


@pytest.mark.parametrize("setting", ["nowhere:m", "mine:"])
async def test_a_setting_that_means_nothing_lists_the_endpoints(embedders: Embedders, setting: str) -> None:
    with pytest.raises(ModelNotFound, match="mine, openai, openai-responses"):
        await embedders.get(setting)


@pytest.mark.parametrize("endpoint", ["embedded", "scripted"])
async def test_an_endpoint_without_embeddings_is_refused(embedders: Embedders, endpoint: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"'{endpoint}'"):
        await embedders.get(f"{endpoint}:m")


async def test_without_a_package_auto_is_no_embedder(embedders: Embedders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "best_installed", lambda: None)

    assert await embedders.get("auto") is None
