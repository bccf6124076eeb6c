"""L8: one sidecar at mixed work for a long time; memory, descriptors, threads and answer times must not drift."""

import random
import tempfile
import time
from typing import Final

from tests.bench.busy import Busy
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost
from tests.bench.processes import descriptors, rss_bytes, threads

from .report import Part, Sample

SESSIONS: Final = 32


async def work(part: Part, seed: int, until: float) -> None:
    """Let 32 sessions work until that time on the monotonic clock; a sample is taken after each round."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-drift-") as folder:
        async with (
            FakeModel() as model,
            FakeHost(store=f"sqlite:{folder}/sessions.db", env=model.environment) as host,
        ):
            busy = Busy(model, dice)
            began = time.monotonic()
            generation = 0
            while time.monotonic() < until:
                ids = [f"d{generation}.{number}" for number in range(SESSIONS)]
                await busy.rounds(host, ids, 5)
                part.add(rounds=1, messages=len(host.messages))
                part.samples.append(await _sample(host, time.monotonic() - began))
                for session_id in ids:
                    await host.request("closeSession", {"sessionId": session_id})
                host.messages.clear()
                host.arrived.clear()
                model.requests.clear()
                generation += 1
            part.samples.append(await _sample(host, time.monotonic() - began))


async def _sample(host: FakeHost, at: float) -> Sample:
    pid = host.process.pid
    times: list[float] = []
    for _ in range(50):
        asked = time.monotonic()
        await host.request("getState")
        times.append(time.monotonic() - asked)
    return Sample(
        at_s=round(at, 1),
        rss_kib=rss_bytes(pid) // 1024,
        descriptors=descriptors(pid),
        threads=threads(pid),
        get_state_worst_ms=round(max(times) * 1000, 2),
    )
