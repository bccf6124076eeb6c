"""Requests to the client: one answer each, whatever the client sends, and nobody waits for a client that has gone."""

import asyncio
import json
from typing import Any

import pytest

from sidecar.server.envelope import Response
from sidecar.server.reverse import ReverseRequests
from sidecar.sessions.outlet import AskFailed


class Client:
    """Records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.reverse = ReverseRequests(lambda body: self.asked.append(json.loads(body)))

    async def ask(self, **options: Any) -> "asyncio.Task[Any]":
        """A request that has been sent."""
        task = asyncio.create_task(self.reverse.request("host/ask", {"n": 1}, **options))
        await asyncio.sleep(0)
        return task

    def answer(self, request_id: Any, **outcome: Any) -> None:
        self.reverse.answer(Response(request_id, {"id": request_id, **outcome}))


@pytest.fixture
def client() -> Client:
    return Client()


async def test_answers_find_their_requests_in_any_order(client: Client) -> None:
    first, second = await client.ask(), await client.ask()
    assert client.asked[0] == {"jsonrpc": "2.0", "id": "s1", "method": "host/ask", "params": {"n": 1}}
    client.answer("s2", result={"two": 2})
    client.answer("s1", result=None)
    assert (await first, await second) == (None, {"two": 2})


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        ({"code": -32601, "message": "no such method"}, -32601, "no such method"),
        ({}, -32603, "the client failed"),
        (None, -32603, "the client failed"),
        ("text", -32603, "the client failed"),
        ({"code": "x", "message": 5}, -32603, "5"),
    ],
)
async def test_an_error_of_any_quality_is_a_failure(client: Client, error: Any, code: int, text: str) -> None:
    asked = await client.ask()
    client.answer("s1", error=error)
    with pytest.raises(AskFailed, match=text) as caught:
        await asked
    assert caught.value.code == code


async def test_a_client_that_does_not_answer_in_time_is_told_that_nobody_waits(client: Client) -> None:
    with pytest.raises(TimeoutError):
        await client.reverse.request("host/ask", {}, timeout=0.001)
    assert client.asked[1:] == [{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s1"}}]
    client.answer("s1", result="late")


async def test_cancelling_the_wait_cancels_the_request(client: Client) -> None:
    asked = await client.ask()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert client.asked[-1]["params"] == {"id": "s1"}


async def test_an_answered_request_is_never_cancelled(client: Client) -> None:
    asked = await client.ask(timeout=30)
    client.answer("s1", result=1)
    await asked
    assert len(client.asked) == 1


@pytest.mark.parametrize("request_id", [None, 1, "1", "s2", "S1", [], {}, True])
async def test_an_answer_to_no_question_is_ignored(client: Client, request_id: Any) -> None:
    asked = await client.ask()
    client.answer(request_id, result="wrong")
    assert not asked.done()
    client.answer("s1", result="right")
    client.answer("s1", result="twice")
    assert await asked == "right"


async def test_when_the_client_goes_everybody_hears_at_once(client: Client) -> None:
    waiting = [await client.ask(), await client.ask()]
    client.reverse.close()
    for asked in (*waiting, await client.ask()):
        with pytest.raises(AskFailed) as caught:
            await asked
        assert caught.value.code == 0
    assert [message["method"] for message in client.asked] == ["host/ask", "host/ask"]
