"""`python -m benchmarks.soak`: kills, compound faults, drift and silent hosts, for as many minutes as there are."""

import argparse
import asyncio
import logging
import random
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from . import compound, drift, kills, unread
from .report import Part, Report

_DESCRIPTION: Final = """\
Let a sidecar suffer for a while, and count what it bore: kill -9 at random times with eight busy sessions, faults on
top of faults, the drift of one process at mixed work, and hosts that read nothing for half a minute. Run it from a
checkout, with the interpreter of the environment where agent-sidecar is installed:

    python -m benchmarks.soak --minutes 5 --seed 1 --report soak.json
    python -m benchmarks.soak --minutes 5 --resume soak.json          the next piece, with the seeds that follow

The exit code is 1 if a promise was broken; the report names the seed of each batch that did, and what it broke.
"""
_SHARES: Final = {"kills": 0.6, "compound": 0.2, "drift": 0.1, "unread": 0.1}
"""How the time of a piece is divided."""

Batch = Callable[[Part, int], Coroutine[Any, Any, None]]


def main() -> int:
    """Do one piece."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.soak", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long this piece takes (5)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="of a new soak")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on from this report, and write it again")
    parser.add_argument("--report", type=Path, default=Path("soak.json"), metavar="FILE", help="of a new soak")
    parser.add_argument("--only", choices=sorted(_SHARES), help="one part, for all of the time")
    arguments = parser.parse_args()
    path: Path = arguments.resume or arguments.report
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each write to a process that was killed
    report = Report.read(path) if arguments.resume else Report(arguments.seed)
    shares = {arguments.only: 1.0} if arguments.only else _SHARES
    asyncio.run(_piece(report, path, {name: share * arguments.minutes * 60 for name, share in shares.items()}))
    print(report.markdown())
    return 1 if report.failed else 0


async def _piece(report: Report, path: Path, seconds: dict[str, float]) -> None:
    report.pieces += 1
    for name, budget in seconds.items():
        part = report.part(name)
        began = time.monotonic()
        until = began + budget
        while time.monotonic() < until:
            seed = random.Random(f"{report.seed} {name} {part.batches}").randrange(1 << 31)
            await _batch(part, seed, _work(name, part.batches, until))
            part.batches += 1
            part.seconds += time.monotonic() - began
            began = time.monotonic()
            report.write(path)


def _work(name: str, number: int, until: float) -> Batch:
    if name == "kills":
        return kills.batch
    if name == "compound":
        return compound.CELLS[number % len(compound.CELLS)]
    if name == "unread":
        return unread.batch
    return lambda part, seed: drift.work(part, seed, until)


async def _batch(part: Part, seed: int, work: Batch) -> None:
    """One batch; what it breaks is written down, and the soak goes on."""
    try:
        await work(part, seed)
    except Exception as error:
        part.failures.append({"seed": seed, "batch": part.batches, "what": f"{type(error).__name__}: {error}"[:4000]})
        sys.stderr.write(f"seed {seed} failed: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
