"""A client that does not read: deltas are joined, its run waits, then its requests; and when it counts as gone."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import DONE, F, FakeModel, Reply, Stall, T
from tests.bench.host import FakeHost
from tests.bench.limited import limited
from tests.bench.model_script import Piece

Start = Callable[..., Any]

KIB, MIB = 1 << 10, 1 << 20
TOLD = ("--log-level", "info")
"""Say why the process ends."""
WRITE_S = 1.0 * 5
"""How long a write of the host may take, times what a loaded machine may need."""


class Watched(list[Piece]):
    """A script that knows how much of it was sent."""

    sent = 0

    def __iter__(self) -> Iterator[Piece]:
        for piece in super().__iter__():
            self.sent += 1
            yield piece

    async def stands_still(self) -> bool:
        """Wait until nothing more of it is sent for a while; False if it was sent whole."""
        before = -1
        while before != self.sent < len(self):
            before = self.sent
            await asyncio.sleep(0.5)
        return self.sent < len(self)


@contextmanager
def not_reading(host: FakeHost) -> Iterator[None]:
    """The host takes nothing meanwhile."""
    host.paused.clear()
    try:
        yield
    finally:
        host.paused.set()


def get_states(host: FakeHost, size: int) -> list[Any]:
    """So many bytes of small requests, with small answers."""
    return [host.ask("getState", {"pad": "x" * 4 * KIB}) for _ in range(size // (4 * KIB))]


async def test_a_client_that_does_not_read_pauses_its_run_and_gets_fewer_deltas(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    """Above the drain mark. Its requests are read all the same, up to the pause mark."""
    limits = limited(tmp_path, writer_drain_bytes=256 * KIB, writer_pause_bytes=4 * MIB)
    host: FakeHost = await start_host(args=limits, env=model.environment)
    session = await host.create_session()
    words = [f"{number:<{8 * KIB}}" for number in range(3000)]
    script = Watched([*map(T, words), F("stop"), DONE])
    model.replies(Reply(script))
    run = session.start("go")
    await run.text_contains("0")

    with not_reading(host):
        assert await script.stands_still(), "the model's stream is read on although nobody takes its text"
        asked = get_states(host, MIB)
        async with asyncio.timeout(WRITE_S):
            await host.process.stdin.drain()
        assert await script.stands_still()
        assert not any(one.answered for one in asked)

    assert all([(await one.result())["server"] for one in asked])
    result = await run.result()
    assert result["text"] == run.text() == "".join(words)
    assert len(run.events("message.delta")) < len(words)


async def test_a_client_that_reads_gets_every_delta_as_it_comes(start_host: Start, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    session = await host.create_session()
    words = [f"{number} " for number in range(200)]
    model.says(*words)
    run = session.start("go")
    await run.result()

    assert [event["data"]["text"] for event in run.events("message.delta")] == words


async def test_above_the_pause_mark_nothing_more_is_read_until_the_client_reads(
    start_host: Start, tmp_path: Path
) -> None:
    limits = limited(tmp_path, writer_drain_bytes=4 * KIB, writer_pause_bytes=64 * KIB)
    host: FakeHost = await start_host(args=limits)
    asked: list[Any] = []
    with not_reading(host):
        asked += [host.ask("getSchema") for _ in range(20)]
        with pytest.raises(TimeoutError):
            await write_for_ever(host, asked)

    assert all([await one.result() for one in asked])


async def write_for_ever(host: FakeHost, asked: list[Any]) -> None:
    """Write more than all pipes hold; raises `TimeoutError` when a write stands still."""
    for _ in range(40):
        asked += get_states(host, 256 * KIB)
        async with asyncio.timeout(1):
            await host.process.stdin.drain()


async def test_a_client_that_leaves_more_than_the_cap_unread_is_gone(
    start_host: Start, model: FakeModel, store: str, tmp_path: Path
) -> None:
    limits = limited(tmp_path, writer_drain_bytes=4 * KIB, writer_pause_bytes=64 * KIB, writer_cap_bytes=2 * MIB)
    host: FakeHost = await start_host(args=(*limits, *TOLD), env=model.environment, store=store)
    session, other = await host.create_session(sessionId="s"), await host.create_session()
    model.otherwise(lambda _: [T("a"), Stall()])
    run = session.start("go", runId="r")
    await run.text_contains("a")
    size = len(json.dumps(await host.request("getSchema")))

    # Each time in one write, so that all are read before the first of them is answered.
    with not_reading(host):
        few = [host.ask("getSchema") for _ in range(3 * MIB // 2 // size)]
        other.start("go")
        await model.received(2)
    assert all([await one.result() for one in few])
    with not_reading(host):
        for _ in range(6 * MIB // size):
            host.ask("getSchema")
        await is_given_up(host, "bytes unread")
    assert await host.wait() == 1
    again: FakeHost = await start_host(store=store)
    state = await again.request("getState", {"sessionId": "s", "runId": "r"})
    assert state["run"]["status"] == "interrupted"
    resumed = await again.resume_session("s")
    assert "recovered" not in resumed.opened, "its end was stored by the process that was left"


async def test_a_client_that_takes_nothing_for_too_long_is_gone(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    """One that has nothing to take is not."""
    limits = limited(tmp_path, writer_stuck_ms=1000)
    host: FakeHost = await start_host(args=(*limits, *TOLD), env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(1.5), T("b"))
    assert (await session.run("go"))["text"] == "ab"

    with not_reading(host):
        for _ in range(20):
            host.ask("getSchema")
        await is_given_up(host, "taken nothing for 1 s")
    assert await host.wait() == 1


async def is_given_up(host: FakeHost, why: str) -> None:
    """Wait until the sidecar says that its client is gone."""
    host.may_be_cut = True
    await host.until(lambda: why.encode() in host.stderr)
