"""The fake model itself: what tests lean on must hold."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.bench.fake_model import CUT, FakeModel, T

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
UNPAIRED: dict[str, Any] = {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False) as client:
        yield client


async def test_a_reply_without_an_ending_gets_one(http: httpx2.AsyncClient) -> None:
    async with FakeModel() as model:
        model.says("hello")
        body = (await http.post(f"{model.url}/chat/completions", json=HI)).text
    first, finish, done = body.strip().split("\n\n")
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"] == {"content": "hello"}
    assert json.loads(finish.removeprefix("data: "))["choices"][0]["finish_reason"] == "stop"
    assert done == "data: [DONE]"


async def test_unpaired_requests_are_refused(http: httpx2.AsyncClient) -> None:
    async with FakeModel() as model:
        answer = await http.post(f"{model.url}/chat/completions", json=UNPAIRED)
        assert answer.status_code == 400
        assert not model.last_request.is_well_paired()


async def test_a_request_that_nobody_scripted_fails_the_test(http: httpx2.AsyncClient) -> None:
    model = FakeModel()
    await model.__aenter__()
    await http.post(f"{model.url}/chat/completions", json=HI)
    with pytest.raises(AssertionError, match="no scripted reply"):
        await model.__aexit__(None, None, None)


async def test_a_cut_is_seen_as_a_broken_connection(http: httpx2.AsyncClient) -> None:
    async with FakeModel() as model:
        model.says(T("a"), CUT)
        with pytest.raises(httpx2.ReadError):
            await http.post(f"{model.url}/chat/completions", json=HI)


async def test_when_nothing_is_scripted_the_fallback_answers(http: httpx2.AsyncClient) -> None:
    async with FakeModel() as model:
        model.otherwise(lambda request: [request.last_user_text])
        assert '"content": "hi"' in (await http.post(f"{model.url}/chat/completions", json=HI)).text


async def test_models_are_listed(http: httpx2.AsyncClient) -> None:
    async with FakeModel(models=["a", "b"]) as model:
        assert [row["id"] for row in (await http.get(f"{model.url}/models")).json()["data"]] == ["a", "b"]
