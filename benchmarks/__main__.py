"""`python -m benchmarks`: run the benchmarks and print one table."""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from . import agents, events, growth, host_calls, memory, memory_load, peers, round_trip, runs, startup
from .report import Figure, show
from .workspace import Workspace

BENCHMARKS: Final[dict[str, Callable[[Workspace], list[Figure]]]] = {
    "round-trip": round_trip.measure,
    "events": events.measure,
    "startup": startup.measure,
    "memory": memory.measure,
    "runs": runs.measure,
    "host-calls": host_calls.measure,
}
ON_REQUEST: Final[dict[str, Callable[[Workspace], list[Figure]]]] = {
    "growth": growth.measure,
    "agents": agents.measure,
    "memory-load": memory_load.measure,
    "peers": peers.measure,
}
"""Run only where they are named: they take minutes, and the peers are installed at their first use."""

_DESCRIPTION: Final = """\
Measure the sidecar beside baselines, in one run on one machine, and print medians and their ratio.

Run it from a checkout, with the interpreter of the environment where agent-sidecar is installed:

    python -m benchmarks            all of them, under two minutes
    python -m benchmarks --quick    fewer repetitions, under 20 seconds
    python -m benchmarks events     only that one
    python -m benchmarks growth     how cost grows with sessions, turns and sizes
    python -m benchmarks agents     an agent's run in process, beside agent-framework; installs that into a cache folder
    python -m benchmarks memory-load  100,000 long-term memories of 1,000 users, searched
    python -m benchmarks peers      beside pygls, mcp, ACP and agent-framework; installs them into a cache folder

Trust the ratios, not the absolute figures; on a busy machine trust neither.
"""


def main() -> int:
    """Run what the command line asks for."""
    known = BENCHMARKS | ON_REQUEST
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help=f"one or more of: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: rougher figures")
    arguments = parser.parse_args()
    wanted: list[str] = arguments.only or list(BENCHMARKS)
    for name in wanted:
        if name not in known:
            parser.error(f"there is no benchmark {name!r}; there are: {', '.join(known)}")
    if sys.platform == "win32":
        parser.error("the baseline needs uvloop and pipes of POSIX")
    _run(wanted, quick=arguments.quick)
    return 0


def _run(wanted: list[str], *, quick: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    began = time.perf_counter()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="sidecar-benchmarks-") as folder:
        for name in wanted:
            sys.stderr.write(f"{name} …\n")
            figures += (BENCHMARKS | ON_REQUEST)[name](Workspace(Path(folder), quick=quick))
    show(figures, console)
    load = os.getloadavg()[0]
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores with a load of {load:.1f}; "
        f"{time.perf_counter() - began:.0f} s in all",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
