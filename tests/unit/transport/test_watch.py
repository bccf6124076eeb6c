"""The parent watch and the signals, without a process of their own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sidecar.transport import parent, signals
from sidecar.transport.parent import ParentWatch


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture(params=["pidfd", "poll"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "poll":
        monkeypatch.setattr(parent, "_open_pidfd", lambda pid: None)
        monkeypatch.setattr(parent, "_POLL_SECONDS", 0.01)


@pytest.mark.usefixtures("way")
async def test_the_death_of_a_named_process_is_told_once(process: subprocess.Popen[bytes]) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    watch = ParentWatch(told.put_nowait)
    assert watch.watch(process.pid)
    assert watch.watch(process.pid)
    process.kill()
    await asyncio.to_thread(process.wait)
    assert str(process.pid) in await asyncio.wait_for(told.get(), 20)
    assert not watch.watch(os.getppid())
    assert told.empty()


@pytest.mark.usefixtures("way")
async def test_a_process_that_is_not_here_is_not_watched(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    watch = ParentWatch(pytest.fail)
    assert not watch.watch(process.pid)
    assert not watch.watch(0)
    assert not watch.watch(os.getpid())
    watch.close()


@pytest.mark.usefixtures("way")
async def test_a_new_parent_means_that_the_old_one_died(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = iter([process.pid])
    monkeypatch.setattr(os, "getppid", lambda: next(parents, 1))
    told: asyncio.Queue[str] = asyncio.Queue()
    ParentWatch(told.put_nowait).watch_parent()
    assert "parent" in await asyncio.wait_for(told.get(), 20)


async def test_a_closed_watch_is_silent(process: subprocess.Popen[bytes]) -> None:
    watch = ParentWatch(pytest.fail)
    watch.watch(process.pid)
    watch.watch_parent()
    watch.close()
    process.kill()
    await asyncio.to_thread(process.wait)
    await asyncio.sleep(0)


async def test_the_first_signal_is_told_and_the_handlers_can_be_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    told: asyncio.Queue[int] = asyncio.Queue()
    restore = signals.install(told.put_nowait)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(told.get(), 20) == signal.SIGTERM
    finally:
        restore()
    assert signal.getsignal(signal.SIGTERM) is before


async def test_a_signal_that_the_parent_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    restore = signals.install(pytest.fail)
    try:
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        restore()
        signal.signal(signal.SIGHUP, before)
