"""The Python client goes on in a new process where the sidecar is killed: real processes, real kills."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from sidecar_client import RpcError, RunEvent, SidecarClient, SidecarDied
from tests.bench.fake_model import FakeModel, Recorded, Stall, T

COMMAND = Path(sys.executable).with_name("agent-sidecar")

Start = Callable[..., AbstractAsyncContextManager[SidecarClient]]


@pytest.fixture
def start(model: FakeModel, store: str) -> Start:
    """Starts clients that reconnect, on one store and one model."""

    def start_client(**options: Any) -> AbstractAsyncContextManager[SidecarClient]:
        return SidecarClient.start(["--store", store], env=model.environment, **{"reconnect": True, **options})

    return start_client


@pytest.fixture
async def client(start: Start) -> AsyncIterator[SidecarClient]:
    async with start() as started:
        yield started


def tell(request: Recorded) -> list[Any]:
    """Stalls in a story, and echoes everything else."""
    text = request.last_user_text
    return [T("Once upon"), Stall()] if "story" in text else [text]


def durable(events: list[RunEvent]) -> list[int]:
    return [event["seq"] for event in events if "ephemeral" not in event]


@pytest.mark.parametrize("killed_at", ["run.started", "message.completed", "message.delta"])
async def test_a_run_survives_the_kill_of_its_sidecar_and_is_never_run_twice(
    client: SidecarClient, model: FakeModel, killed_at: str
) -> None:
    model.otherwise(tell)
    everything: list[RunEvent] = []
    client.on_event(everything.append)
    session = await client.create_session()
    first_pid = client.pid
    own: list[RunEvent] = []

    def kill_once(event: RunEvent) -> None:
        own.append(event)
        if event["type"] == killed_at and client.pid == first_pid:
            client.kill()

    result = await session.run("a story", on_event=kill_once)

    assert (result["status"], result["stopReason"]) == ("interrupted", "interrupted")
    assert client.pid != first_pid
    assert own == everything
    assert own[-1]["type"] == "run.completed"
    assert durable(own) == list(range(1, result["lastSeq"] + 1))
    assert len(model.requests) <= 1

    asked = len(model.requests)
    assert (await session.run("hi"))["text"] == "hi"
    assert durable(everything) == list(range(1, everything[-1]["seq"] + 1))
    assert len(model.requests) == asked + 1


async def test_a_run_that_the_dead_process_never_read_is_run_by_the_new_one(
    client: SidecarClient, model: FakeModel
) -> None:
    model.says("hello")
    session = await client.create_session()
    os.kill(client.pid, signal.SIGSTOP)
    run = session.stream("hi")
    client.kill()

    assert [event["type"] async for event in run][-1] == "run.completed"
    assert (await run.result())["status"] == "completed"
    assert len(model.requests) == 1


async def test_every_open_session_is_resumed_and_a_closed_one_is_not(client: SidecarClient, model: FakeModel) -> None:
    model.otherwise(lambda request: [request.last_user_text])
    one, two = await client.create_session(), await client.resume_session((await client.create_session()).session_id)
    closed = await client.create_session()
    await closed.close()
    client.kill()
    await client.wait_ended()

    results = await asyncio.gather(one.run("1"), two.run("2"))

    assert [result["text"] for result in results] == ["1", "2"]
    with pytest.raises(RpcError) as caught:
        await closed.run("3")
    assert caught.value.kind == "sessionClosed"


async def test_what_cannot_be_asked_again_raises_the_death(client: SidecarClient, model: FakeModel) -> None:
    model.says(T("Once upon"), Stall())
    one_off = client.stream("a story")
    while (await anext(one_off))["type"] != "message.delta":
        pass
    session = await client.create_session()
    waiting = asyncio.create_task(session.get_events(afterSeq=0, waitMs=60_000))
    await client.get_state()
    client.kill()

    with pytest.raises(SidecarDied):
        await one_off.result()
    with pytest.raises(SidecarDied):
        await waiting
    state: Any = await session.get_state(include=["session"])
    assert state["session"]["open"] is True


async def test_an_ephemeral_session_is_gone_and_its_run_says_so(client: SidecarClient, model: FakeModel) -> None:
    model.says(T("Once upon"), Stall())
    run = (await client.create_session(ephemeral=True)).stream("a story")
    while (await anext(run))["type"] != "message.delta":
        pass
    client.kill()

    with pytest.raises(RpcError) as caught:
        await run.result()
    assert caught.value.kind == "sessionNotFound"


async def test_a_cancel_that_the_dead_process_did_not_hear_reaches_the_new_one(
    client: SidecarClient, model: FakeModel
) -> None:
    model.says(T("Once upon"), Stall())
    session = await client.create_session()
    os.kill(client.pid, signal.SIGSTOP)
    run = session.stream("a story")
    run.cancel()
    client.kill()

    assert (await run.result())["status"] == "cancelled"


async def test_without_reconnect_a_death_is_raised(start: Start, model: FakeModel) -> None:
    model.says(T("Once upon"), Stall())
    async with start(reconnect=False) as client:
        session = await client.create_session()
        with pytest.raises(SidecarDied):
            await session.run("a story", on_event=lambda event: client.kill())
        with pytest.raises(SidecarDied):
            await session.get_state()


async def test_a_sidecar_that_dies_each_time_is_given_up(
    tmp_path: Path, model: FakeModel, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    flag = tmp_path / "dead"
    script = tmp_path / "sidecar"
    script.write_text(f'#!/bin/sh\n[ -e "{flag}" ] && exit 3\nexec "{COMMAND}" serve --store "{store}"\n')
    script.chmod(0o755)
    async with SidecarClient.start(command=[str(script)], env=model.environment, reconnect=True) as client:
        session = await client.create_session()
        flag.touch()
        client.kill()
        await client.wait_ended()
        with pytest.raises(SidecarDied, match="ended with code 3"):
            await session.run("hi")
        with pytest.raises(SidecarDied):
            await session.get_state()
    assert len(caplog.records) == 3


async def test_closing_while_a_new_process_is_started_ends_what_waits(client: SidecarClient, model: FakeModel) -> None:
    model.says(T("Once upon"), Stall())
    run = (await client.create_session()).stream("a story")
    while (await anext(run))["type"] != "message.delta":
        pass
    client.kill()
    await client.wait_ended()
    await client.close()
    with pytest.raises(SidecarDied):
        await run.result()
