"""F2, long: kill -9 at random times while eight sessions are busy, in batches of a store each."""

import tempfile
from pathlib import Path
from typing import Final

from tests.bench.crashes import Crashes
from tests.bench.fake_model import FakeModel

from .report import Part

BATCH: Final = 10
"""Kills of one store."""


async def batch(part: Part, seed: int) -> None:
    """Ten kills, each held against the promises by the sidecar that follows.

    Raises:
        AssertionError: a promise was broken.
    """
    with tempfile.TemporaryDirectory(prefix="soak-kills-") as folder:
        ledger = Path(folder) / "ledger.jsonl"
        async with Crashes(f"sqlite:{folder}/sessions.db", FakeModel(), ledger, seed=seed) as crashes:
            for _ in range(BATCH):
                await crashes.kill_once()
                part.add(kills=1)
            tally = await crashes.hold()
            part.add(
                verdicts=crashes.verdicts,
                sessions=tally.sessions,
                durable_events=tally.events,
                model_requests=tally.requests,
                **{f"runs_{status}": count for status, count in tally.runs.items()},
            )
            part.most(slowest_start_ms=round(crashes.slowest_start_s * 1000))
