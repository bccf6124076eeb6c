"""Vectors of memory, from an endpoint: they follow the answer, survive a kill, and runs go on without them."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.bench.fake_embeddings import FakeEmbeddings
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.waiting import eventually

SLACK = 10
AGENT = {
    "contextProviders": [
        {
            "type": "chat_history_memory",
            "sourceId": "memory",
            "config": {"storageScope": {"userId": {"fromState": "user_id"}}},
        }
    ]
}


@pytest_asyncio.fixture
async def vectors() -> AsyncIterator[FakeEmbeddings]:
    async with FakeEmbeddings() as endpoint:
        yield endpoint


async def start(
    start_host: Any, folder: Path, model: FakeModel, vectors: FakeEmbeddings, *, limits: str = "", store: str = "memory"
) -> FakeHost:
    config = folder / "vectors.toml"
    config.write_text(
        f'[embeddings]\nembedder = "vectors:fake-embeddings"\n[endpoints.vectors]\ntype = "openai"\n'
        f'base_url = "{vectors.url}"\napi_key_env = "VECTORS_KEY"\nmax_retries = 0\n[limits]\n{limits}\n'
    )
    env = {**model.environment, "VECTORS_KEY": "sk-vectors"}
    return await start_host(args=("--config", str(config)), env=env, store=store)


async def alice(host: FakeHost) -> HostSession:
    return await host.create_session(agent=AGENT, state={"user_id": "Alice"})


async def test_vectors_follow_the_answer_and_are_searched_in_the_next_session(
    start_host: Any, tmp_path: Path, model: FakeModel, vectors: FakeEmbeddings
) -> None:
    host = await start(start_host, tmp_path, model, vectors)
    model.otherwise(lambda request: "Noted.")
    await (await alice(host)).run("I cannot eat spicy food.")
    await eventually(lambda: "I cannot eat spicy food." in vectors.texts)

    await (await alice(host)).run("Is this food spicy?")

    assert "Is this food spicy?" in vectors.texts
    assert any("I cannot eat spicy food." in str(m["content"]) for m in model.last_request.body["messages"])


async def test_what_a_kill_left_without_vectors_gets_them_in_the_next_process(
    start_host: Any, tmp_path: Path, model: FakeModel, vectors: FakeEmbeddings, store: str
) -> None:
    vectors.hangs()
    vectors.hangs()
    model.otherwise(lambda request: "Noted.")
    doomed = await start(start_host, tmp_path, model, vectors, store=store)
    await (await alice(doomed)).run("I cannot eat spicy food.")
    doomed.kill()
    await doomed.wait()
    vectors.otherwise(vectors.embedded)

    host = await start(start_host, tmp_path, model, vectors, store=store)
    result = await (await alice(host)).run("hello spicy")

    assert result["status"] == "completed"
    assert any("I cannot eat spicy food." in str(m["content"]) for m in model.last_request.body["messages"])
    await eventually(lambda: "I cannot eat spicy food." in vectors.texts)


async def test_a_silent_endpoint_costs_a_run_its_vectors_and_a_short_wait_only(
    start_host: Any, tmp_path: Path, model: FakeModel, vectors: FakeEmbeddings
) -> None:
    """BR-05(a), BR-16(e) and F6."""
    host = await start(start_host, tmp_path, model, vectors, limits="retrieval_timeout_ms = 1000")
    model.otherwise(lambda request: "Noted.")
    for _ in range(8):
        vectors.hangs()
    session, other = await alice(host), await host.create_session()
    run = session.start("I cannot eat spicy food.")

    began = time.monotonic()
    assert (await other.run("quick"))["text"] == "Noted."
    result = await run.result()

    assert time.monotonic() - began < 1 * SLACK
    assert result["status"] == "completed"
    assert [warning["kind"] for warning in result["warnings"]] == ["providerWarning"]
    assert "full text alone" in result["warnings"][0]["message"]


async def test_blank_text_is_never_embedded(
    start_host: Any, tmp_path: Path, model: FakeModel, vectors: FakeEmbeddings
) -> None:
    """BR-21: the endpoint answers 400 to blank text, and is never asked."""
    host = await start(start_host, tmp_path, model, vectors)
    model.otherwise(lambda request: "Noted.")
    session = await alice(host)
    for blank in ("", "   ", "\n\t", "\u200b"):
        result = await session.run(blank)
        assert result["warnings"] == []
    await session.run("And now some words.")
    await eventually(lambda: "And now some words." in vectors.texts)

    assert all(text.strip("\u200b \n\t") for text in vectors.texts)
