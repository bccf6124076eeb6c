"""F8: the host reads nothing for half a minute, while four runs stream and 200 requests come. Nothing may be lost."""

import asyncio
import contextlib
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.fake_model import DONE, F, FakeModel, Item, Raw, Recorded, Reply, T
from tests.bench.handles import Asked, HostRun
from tests.bench.host import FakeHost
from tests.bench.ledger import Ledger
from tests.bench.model_script import encode
from tests.bench.processes import rss_bytes
from tests.bench.promises import hold
from tests.bench.wire import Json

from .report import Part

SILENT_S: Final = 30.0
RUNS: Final = 4
DELTAS: Final = 100_000
"""Of each run: some 130 MB of events in all, if none were merged and no run had to wait."""
ROUNDS: Final = 25
"""Of seven requests and a short run each: 200 requests in all."""
PAD: Final = "x" * 4096
"""In each request, unknown and ignored: 200 of them are more than the pipe holds, so that the sidecar has to read."""
RSS_GROWTH: Final = 64 << 20
"""What a silence may cost in memory: as much as the sidecar may ever keep unsent (`writer_cap_bytes`)."""
WRITE_S: Final = 5.0
"""How long a write of the host may stand still."""
ANSWERED_S: Final = 30.0
"""How long all answers may take, once the host reads again."""


async def batch(part: Part, seed: int) -> None:
    """One silence; then every answer, every event and the store, read by a fresh sidecar, are held against each other.

    Raises:
        AssertionError: something was lost, stood still or grew.
        TimeoutError: a write or an answer stood still.
    """
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-unread-") as folder:
        store = f"sqlite:{folder}/sessions.db"
        with contextlib.closing(Ledger(Path(folder) / "ledger.jsonl")) as ledger:
            async with FakeModel() as model:
                model.otherwise(_says)
                async with FakeHost(store=store, env=model.environment, ledger=ledger) as host:
                    await _suffer(part, host, dice)
                    host.kill()
                    await host.wait()
                async with FakeHost(store=store, env=model.environment, ledger=ledger) as fresh:
                    tally = await hold(ledger, fresh, model.requests)
                    state = await fresh.request("getState", {"sessionId": "s0"})
                    assert state["state"] == {"n": ROUNDS - 1}, f"promise 1: the state is {state['state']}"
        assert tally.repaired == 0, "an acknowledged end of a run was not stored"
        assert dict(tally.runs) == {"completed": RUNS + ROUNDS}, f"the runs ended as {tally.runs}"
        part.add(silences=1, durable_events=tally.events, runs_completed=tally.runs["completed"])


async def _suffer(part: Part, host: FakeHost, dice: random.Random) -> None:
    runs = await _storm(host)
    host.paused.clear()
    try:
        silence = await _silence(host, dice)
    finally:
        host.paused.set()  # else nobody notices the sidecar's end
    began = time.monotonic()
    async with asyncio.timeout(ANSWERED_S):
        answers = [(method, await one.message()) for method, one in silence.asked]
    answered_s = time.monotonic() - began
    refused = [answer["error"] for _, answer in answers if "error" in answer]
    assert not refused, f"refused, far below the limit of requests in flight: {refused[:3]}"
    states = [answer["result"] for method, answer in answers if method == "getState"]
    assert all("activeRun" in state for state in states[-RUNS:]), "a run was over before the silence was"
    for run in runs:
        text = (await run.result())["text"]
        assert text == run.text() == "".join(_words()), f"{run.id} told {len(run.text())} characters of {len(text)}"
    part.add(requests_answered=len(answers), delta_events=len(host.events(None, "message.delta")))
    part.most(
        rss_growth_kib=silence.rss_growth >> 10,
        slowest_write_ms=round(silence.slowest_write_s * 1000),
        all_answered_ms=round(answered_s * 1000),
    )


@dataclass(frozen=True, slots=True)
class _Silence:
    """What happened while nothing was read."""

    asked: list[tuple[str, Asked]]
    """Every request, with its method."""
    slowest_write_s: float
    rss_growth: int
    """Of the sidecar, in bytes, at its highest."""


async def _silence(host: FakeHost, dice: random.Random) -> _Silence:
    pid, stdin = host.process.pid, host.process.stdin
    assert stdin is not None
    before = peak = rss_bytes(pid)
    asked: list[tuple[str, Asked]] = []
    slowest = 0.0
    began = time.monotonic()
    for number in range(ROUNDS):
        requests = _requests(number)
        dice.shuffle(requests)
        # It names a session that its own round makes: it is asked for behind the others.
        short = {"sessionId": f"late{number}", "input": f"short {number}", "runId": f"l{number}"}
        for method, params in (*requests, ("run", short)):
            asked.append((method, host.ask(method, {**params, "pad": PAD})))
            written = time.monotonic()
            async with asyncio.timeout(WRITE_S):
                await stdin.drain()
            slowest = max(slowest, time.monotonic() - written)
        await asyncio.sleep(max(0.0, began + (number + 1) * SILENT_S / ROUNDS - time.monotonic()))
        peak = max(peak, rss_bytes(pid))
    assert not any(one.answered for _, one in asked), "the host has read meanwhile"
    assert peak - before <= RSS_GROWTH, f"a silence cost {(peak - before) >> 20} MiB"
    return _Silence(asked, slowest, peak - before)


async def _storm(host: FakeHost) -> list[HostRun]:
    """Runs that stream as fast as the host reads, and have begun to."""
    sessions = [await host.create_session(sessionId=f"s{number}") for number in range(RUNS)]
    runs = [session.start(f"storm {session.id}", runId=f"r{session.id}") for session in sessions]
    for run in runs:
        await run.text_contains("0")
    return runs


def _requests(number: int) -> list[tuple[str, Json]]:
    """Reads and changes of one round, in any order; each round's `run` comes after them."""
    streaming = f"s{number % RUNS}"
    return [
        ("createSession", {"sessionId": f"late{number}"}),
        ("updateSession", {"sessionId": "s0", "statePatch": {"n": number}}),
        ("getState", {"sessionId": streaming}),
        ("getHistory", {"sessionId": streaming}),
        ("getEvents", {"sessionId": streaming, "afterSeq": 0}),
        ("listSessions", {}),
        ("listAgents", {}),
    ]


def _says(request: Recorded) -> Reply | list[Item]:
    if request.last_user_text.startswith("short"):
        return ["done"]
    return Reply([Raw(b"".join(encode(T(word)) for word in _words())), F("stop"), DONE])


def _words() -> list[str]:
    """The deltas of one long answer, all of them different."""
    return [f"{number} " for number in range(DELTAS)]
