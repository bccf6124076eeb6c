"""The sidecar, over stdio and durable, beside Microsoft's agent-framework called in process, which stores nothing."""

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from benchmarks.child import Child
from benchmarks.cost import Metered
from benchmarks.report import Aim, Baseline, Figure, interleaved
from benchmarks.workspace import Workspace, frames, request

from .environment import peer

_ENDED: Final = b'"result":{"runId"'
_AT_ONCE: Final = 64
_WHY: Final = (
    "Between the two are two pipes, JSON both ways, about ten events of the run, and transactions of the store that a "
    "crash survives."
)
_ONE: Final = Aim("<=", 2.0, _WHY)
_MANY: Final = Aim(">=", 1.0, _WHY)


def measure(workspace: Workspace) -> list[Figure]:
    """One session, then many at once; new ones for every sample, so that histories are equally long."""
    rounds, times = workspace.times(50, 20), workspace.times(8, 3)
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar("normal"))
        maf = children.enter_context(peer(workspace, "maf_runs.py"))
        ours = Metered(sidecar, rounds, _sidecar(sidecar, 1, rounds))
        plain = Metered(maf, rounds, _maf(maf, 1, rounds, history=False))
        history = Metered(maf, rounds, _maf(maf, 1, rounds, history=True))
        one = interleaved(times, ours, plain, history)
        rounds = workspace.times(5, 2)
        ours_many = Metered(sidecar, rounds * _AT_ONCE, _sidecar(sidecar, _AT_ONCE, rounds))
        maf_many = Metered(maf, rounds * _AT_ONCE, _maf(maf, _AT_ONCE, rounds, history=True))
        many = [[1e6 / sample for sample in samples] for samples in interleaved(times, ours_many, maf_many)]
        memory = [child.rss_bytes() / 1e6 for child in (sidecar, maf)]
    run = "a run, durability normal"
    return [
        Figure(run, "us", one[0], Baseline("agent-framework, plain", one[1]), _ONE),
        Figure(run, "us", one[0], Baseline("agent-framework, history", one[2]), _ONE),
        Figure("  its CPU time", "us", ours.cpu_us, Baseline("agent-framework, history", history.cpu_us)),
        Figure(
            f"runs, {_AT_ONCE} sessions at once", "/s", many[0], Baseline("agent-framework, history", many[1]), _MANY
        ),
        Figure("  CPU time of one", "us", ours_many.cpu_us, Baseline("agent-framework, history", maf_many.cpu_us)),
        Figure("  memory after all that", "MB", memory[:1], Baseline("agent-framework", memory[1:])),
    ]


def _sidecar(child: Child, sessions: int, rounds: int) -> Callable[[], float]:
    """Microseconds of a run. A round ends before the next begins; nothing is streamed, as in the other."""

    def sample() -> float:
        names = [os.urandom(4).hex() for _ in range(sessions)]
        for name in names:
            child.ask(request(2, "createSession", sessionId=name, model="scripted:echo"))
        runs = (
            request(number, "run", sessionId=name, input="hello", stream=False) for number, name in enumerate(names)
        )
        data = frames(*runs)
        began = time.perf_counter()
        for _ in range(rounds):
            child.write(data)
            child.skip_to(_ENDED, sessions)
        return (time.perf_counter() - began) / (rounds * sessions) * 1e6

    return sample


def _maf(child: Child, sessions: int, rounds: int, *, history: bool) -> Callable[[], float]:
    ask = json.dumps({"sessions": sessions, "rounds": rounds, "history": history}).encode()
    return lambda: json.loads(child.ask(ask))["seconds"] / (rounds * sessions) * 1e6
