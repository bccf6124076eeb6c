"""To which run the Python client gives an event, and which sessions it takes for closed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar_client import Run, SidecarClient

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]


@pytest.fixture
async def client() -> AsyncIterator[SidecarClient]:
    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=True) as started:
        yield started


async def sessions_of(run: Run) -> list[str]:
    return [event["sessionId"] async for event in run]


async def test_runs_of_one_id_in_two_sessions_and_in_none_each_get_their_own_events(client: SidecarClient) -> None:
    one = (await client.create_session(sessionId="one")).stream("hello", runId="turn-1")
    two = (await client.create_session(sessionId="two")).stream("hello", runId="turn-1")
    alone = client.stream("hello", runId="turn-1")

    assert await sessions_of(one) == ["one"] * 3
    assert await sessions_of(two) == ["two"] * 3
    assert await sessions_of(alone) == ["s"] * 3


async def test_both_of_one_id_are_sent_again_to_a_new_process(client: SidecarClient) -> None:
    sessions = [await client.create_session(sessionId=name) for name in ("one", "two")]
    client.kill()
    await client.wait_ended()
    runs = [session.stream("hello", runId="turn-1") for session in sessions]
    assert [(await run.result())["status"] for run in runs] == ["completed", "completed"]
    assert [await sessions_of(run) for run in runs] == [["one"] * 3, ["two"] * 3]


@pytest.mark.parametrize("method", ["closeSession", "deleteSession"])
async def test_a_session_that_is_closed_by_a_plain_request_is_not_resumed(method: str) -> None:
    resumed: list[Any] = []

    def watch(way: str, message: Any) -> None:
        if message.get("method") == "resumeSession":
            resumed.append(message["params"]["sessionId"])

    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=True, trace=watch) as client:
        for name in ("closed", "open"):
            await client.create_session(sessionId=name)
        await client.request(method, {"sessionId": "closed"})
        client.kill()
        await client.wait_ended()
        await client.request("echo")
    assert resumed == ["open"]
