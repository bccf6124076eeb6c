"""F7, F8 and BR-06: a host that vanishes, and one that does not read. Nothing is left behind, and nothing is lost."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.process import FLUSH_S
from tests.bench.fake_model import DONE, F, FakeModel, Raw, Reply, Stall, T
from tests.bench.host import FakeHost, HostRun, HostSession
from tests.bench.ledger import Ledger
from tests.bench.model_script import encode
from tests.bench.processes import children, gone, rss_bytes
from tests.bench.promises import hold
from tests.bench.wire import Framing
from tests.conftest import SCALE, scaled

SLACK = 5
"""How many times the stated bound a loaded machine may take."""
GONE_S = 5
MIB = 1 << 20

PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
sys.stderr.write(f"{child.pid} is the sidecar\\n")
sys.stderr.flush()
child.wait()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


# ---- F7: the host vanishes ---------------------------------------------------------------------------------------

WAYS: dict[str, tuple[Framing, int | None]] = {
    "end of input": ("header", 1),
    "the parent is killed": ("header", None),
    "stdout alone is closed": ("header", 1),
    "stdin alone is closed": ("ndjson", 0),
}
"""How it goes: the framing, and the exit code where anybody can see it."""


@pytest.mark.parametrize("streaming", [False, True], ids=["idle", "streaming"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_sidecar_whose_host_vanishes_settles_its_runs_and_goes(
    start_host: Any, model: FakeModel, store: str, ledger: Ledger, way: str, streaming: bool
) -> None:
    framing, code = WAYS[way]
    under = (sys.executable, "-c", PARENT) if way == "the parent is killed" else ()
    options = {"store": store, "env": model.environment, "ledger": ledger}
    host = await start_host(framing=framing, under=under, **options)
    session = await host.create_session(sessionId="s")
    pid = await sidecar_of(host) if under else host.process.pid
    pieces = [T("word "), Stall(0.01)] * (40 if way == "stdin alone is closed" else 100_000)
    if streaming:
        model.replies(Reply([*pieces, F("stop"), DONE]))
        await session.start("talk", runId="r").text_contains("word word")

    assert children(pid) == [], "there is something to be left behind"

    vanish(host, way)
    async with asyncio.timeout(GONE_S * SLACK):
        await gone(pid)
        ended = await host.process.wait()
    assert code is None or ended == code

    again = await start_host(**options)
    tally = await hold(ledger, again, model.requests)
    assert tally.repaired == 0, "the end of the run was left to crash repair"
    if streaming:
        assert dict(tally.runs) == {"completed" if way == "stdin alone is closed" else "interrupted": 1}
    model.says("here")
    assert (await (await again.resume_session("s")).run("hello", runId="next"))["text"] == "here"


def vanish(host: FakeHost, way: str) -> None:
    """Be gone in this way."""
    match way:
        case "the parent is killed":
            host.kill(signal.SIGKILL)
        case "stdout alone is closed":
            host.stop_reading()
        case _:
            host.hang_up()


async def sidecar_of(host: FakeHost) -> int:
    """The pid of a sidecar that was started by another process."""
    await host.until(lambda: b"is the sidecar" in host.stderr)
    return int(host.stderr.split()[0])


# ---- F8: the host does not read ----------------------------------------------------------------------------------

SILENT_S = 5 * min(SCALE, 6)
"""How long nothing is read: 30 s in the long tier."""
DELTAS = scaled(12_500)
"""Of each of the four runs."""


async def test_a_host_that_does_not_read_for_a_while_loses_nothing(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(store=store, env=model.environment)
    runs = await storm(host, model)
    before = rss_bytes(host.process.pid)
    host.paused.clear()
    asked = [host.ask("getState", {"sessionId": runs[0].session.id, "pad": "x" * 2000}) for _ in range(100)]
    began = time.monotonic()
    slowest = 0.0
    for _ in range(100):
        asked.append(host.ask("getState", {"sessionId": runs[0].session.id, "pad": "x" * 2000}))
        slowest = max(slowest, await write_time(host))
        await asyncio.sleep(SILENT_S / 100)
    assert time.monotonic() - began >= SILENT_S
    assert slowest < 1 * SLACK, f"a write of the host stood still for {slowest:.1f} s"
    assert rss_bytes(host.process.pid) - before < 256 * MIB

    host.paused.set()
    for one in asked:
        message = await one.message()
        assert "result" in message or message["error"]["data"]["kind"] == "overloaded"
    results = [await run.result() for run in runs]
    said = "".join(words())
    for run, result in zip(runs, results, strict=True):
        assert result["text"] == run.text() == said
        assert await run.session.history() == [("user", "go"), ("assistant", said)]
        assert len(run.events("run.completed")) == 1


@pytest.mark.parametrize("framing", ["header", "ndjson"])
async def test_a_host_that_never_reads_again_costs_nothing_that_was_stored(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path, ledger: Ledger, framing: Framing
) -> None:
    """The end of its input ends the process; that of a script's does not, but its taking nothing for two seconds."""
    config = tmp_path / "impatient.toml"
    config.write_text("[limits]\nwriter_stuck_ms = 2000\n")
    options = {"store": store, "env": model.environment, "ledger": ledger}
    host: FakeHost = await start_host(framing=framing, args=("--config", str(config)), **options)
    runs = await storm(host, model)
    host.paused.clear()
    host.hang_up()

    async with asyncio.timeout((GONE_S + 2) * SLACK):
        await gone(host.process.pid)
    host.may_be_cut = True
    host.paused.set()
    assert await host.wait() == 1
    again = await start_host(**options)
    tally = await hold(ledger, again)
    assert tally.repaired == 0, "the ends of the runs were left to crash repair"
    assert sum(tally.runs.values()) == len(runs)
    assert tally.runs["absent"] == tally.runs["failed"] == 0


async def test_a_script_whose_reader_is_slow_gets_all_of_its_answers(start_host: Any) -> None:
    """Slower than what an ending process grants to any other client."""
    host: FakeHost = await start_host()
    asked = [host.ask("getSchema") for _ in range(20)]
    await asked[0].result()
    host.paused.clear()
    host.hang_up()
    await asyncio.sleep(FLUSH_S + 1)
    host.paused.set()
    assert await host.wait() == 0
    assert all([(await one.result())["schema"] for one in asked])


async def storm(host: FakeHost, model: FakeModel) -> list[HostRun]:
    """Four runs that stream as fast as they can, and have begun to."""
    text = b"".join(encode(T(word)) for word in words())
    model.otherwise(lambda request: Reply([Raw(text), F("stop"), DONE]))
    sessions: list[HostSession] = [await host.create_session(sessionId=f"s{number}") for number in range(4)]
    runs = [session.start("go", runId=f"r{number}") for number, session in enumerate(sessions)]
    for run in runs:
        await run.text_contains("0")
    return runs


def words() -> list[str]:
    """The deltas of one answer, all of them different."""
    return [f"{number} " for number in range(DELTAS)]


async def write_time(host: FakeHost) -> float:
    """Seconds until the sidecar has taken (nearly) all that was written to it."""
    began = time.monotonic()
    await host.process.stdin.drain()
    return time.monotonic() - began
