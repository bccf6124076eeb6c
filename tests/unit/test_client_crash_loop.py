"""When the Python client stops starting new processes, and what becomes then of the runs that wait for one."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sidecar_client import RpcError, SidecarClient, SidecarDied, reconnect
from sidecar_client.reconnect import ATTEMPTS, PAUSE, SETTLED, Attempts

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "PAUSE", 0.001)


def pauses(attempts: Attempts) -> list[float]:
    """What is waited before each new process, until it is enough."""
    return list(iter(attempts.next, None))


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_processes_that_begin_and_die_of_a_run_are_given_up(
    factory: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    processes: list[str] = []

    async def talk() -> None:
        client: SidecarClient
        async with (
            asyncio.timeout(20),
            SidecarClient.start(
                command=FAKE,
                reconnect=True,
                trace=lambda way, message: processes.append(way) if message.get("method") == "initialize" else None,
            ) as client,
        ):
            session = await client.create_session(sessionId="s")
            with pytest.raises(SidecarDied, match="ended with code 7"):
                await session.run("die")
            with pytest.raises(SidecarDied):
                await session.get_state()

    with caplog.at_level(logging.CRITICAL), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(talk())

    assert len(processes) == 1 + ATTEMPTS


def test_the_pauses_grow_and_the_attempts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "PAUSE", PAUSE)
    assert pauses(Attempts()) == [0, PAUSE, 2 * PAUSE]


def test_a_process_that_lives_for_a_while_or_answers_a_run_begins_the_count_anew() -> None:
    now = 0.0
    attempts = Attempts(lambda: now)
    pauses(attempts)
    attempts.began()
    now = SETTLED / 2
    attempts.ended()
    assert pauses(attempts) == []

    now = SETTLED
    attempts.ended()
    assert len(pauses(attempts)) == ATTEMPTS

    attempts.answered()
    assert len(pauses(attempts)) == ATTEMPTS


async def test_deaths_between_which_runs_are_answered_are_no_loop() -> None:
    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=True) as client:
        session = await client.create_session(sessionId="s")
        for _ in range(ATTEMPTS + 2):
            client.kill()
            await client.wait_ended()
            assert (await session.run("hello"))["status"] == "completed"


async def test_a_run_that_an_ending_sidecar_cancels_is_answered_by_the_next_one(tmp_path: Path) -> None:
    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=True) as client:
        first = client.pid
        session = await client.create_session(sessionId="s")
        assert (await session.run(f"end once {tmp_path / 'ended'}"))["status"] == "completed"
        assert client.pid != first


@pytest.mark.parametrize("reconnecting", [False, True])
async def test_where_no_new_process_answers_it_the_cancelled_run_says_so(tmp_path: Path, reconnecting: bool) -> None:
    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=reconnecting) as client:
        run = client.stream(f"end once {tmp_path / 'ended'}")  # one-off: never sent again
        with pytest.raises(RpcError) as caught:
            await run.result()
    assert caught.value.kind == "serverCancelled"


async def test_a_run_that_waits_for_the_next_process_ends_with_the_client(tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    def watch(way: str, message: Any) -> None:
        if "error" in message:
            cancelled.set()

    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, reconnect=True, trace=watch) as client:
        run = (await client.create_session(sessionId="s")).stream(f"end once {tmp_path / 'ended'}")
        await cancelled.wait()
        await asyncio.sleep(0)  # a trace comes first: in this step the answer is taken
        await client.close()
        with pytest.raises(SidecarDied):
            await run.result()
