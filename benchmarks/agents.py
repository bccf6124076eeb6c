"""A run of an agent in process, beside the same run in Microsoft's agent-framework: no store and no wire in either.

All figures are CPU time: nothing waits in these runs, and what else the machine does is no part of it.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from .child import Child
from .peers.environment import peer
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace

_CHUNKS: Final = 200
_TURNS: Final = 200
_IDLE_US: Final = 100.0
"""What twenty idle providers may add to a run."""
_HALF: Final = Aim("<=", 0.5, "The run keeps what explains it, and tells of each step by an event.")
_LESS: Final = Aim("<=", 1.0, "A hook that does nothing has its two events, its time limit and its undo all the same.")
_PEER: Final = "agent-framework"

_Measure = Callable[[], float]
_Pair = Callable[[Child], _Measure]


def measure(workspace: Workspace) -> list[Figure]:
    """Each kind of run, theirs and ours in turn."""
    rounds, times = 20, workspace.times(10, 3)
    kinds: dict[str, _Pair] = {
        "a run, history of few turns": lambda child: _run(child, rounds),
        f"a run, history of {_TURNS} turns": lambda child: _run(child, rounds, turns=_TURNS),
        "a run with one tool call": lambda child: _run(child, rounds, tool=True),
        "a streamed chunk": lambda child: _chunk(child, rounds),
    }
    idle = {"no hooks": "plain", "empty hooks": "hooks"}
    with ExitStack() as children:
        script = Path(__file__).with_name("agent_child.py")
        sidecar = children.enter_context(workspace.python(str(script)))
        maf = children.enter_context(peer(workspace, "maf_runs.py"))
        pairs: list[_Pair] = [*kinds.values(), *(_added_by(kind, rounds) for kind in idle.values())]
        samples = interleaved(times, *(pair(child) for pair in pairs for child in (sidecar, maf)))
    ours, theirs = samples[::2], samples[1::2]
    figures = [
        Figure(name, "us", mine, Baseline(_PEER, other), _HALF)
        for name, mine, other in zip(kinds, ours, theirs, strict=False)
    ]
    for name, mine, other in zip(idle, ours[len(kinds) :], theirs[len(kinds) :], strict=True):
        figures += _idle(f"20 idle providers add, {name}", mine, other)
    return figures


def _idle(name: str, ours: Sequence[float], theirs: Sequence[float]) -> list[Figure]:
    return [
        Figure(name, "us", ours, Baseline("the aim, 0.1 ms", [_IDLE_US]), _LESS),
        Figure(name, "us", ours, Baseline(_PEER, theirs)),
    ]


def _run(child: Child, rounds: int, **kind: Any) -> _Measure:
    """Microseconds of a run, the mean of some in a new session."""
    ask = json.dumps({"sessions": 1, "rounds": rounds, "history": True, **kind}).encode()
    return lambda: json.loads(child.ask(ask))["cpu"] / rounds * 1e6


def _chunk(child: Child, rounds: int) -> _Measure:
    """Microseconds that one more chunk costs."""
    long, short = _run(child, rounds, chunks=_CHUNKS + 1), _run(child, rounds, chunks=1)
    return lambda: (long() - short()) / _CHUNKS


def _added_by(idle: str, rounds: int) -> _Pair:
    """Microseconds that idle providers add to a run."""

    def pair(child: Child) -> _Measure:
        with_them, without = _run(child, rounds, idle=idle), _run(child, rounds)
        return lambda: with_them() - without()

    return pair
