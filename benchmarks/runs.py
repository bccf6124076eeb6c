"""Whole runs a second, durable: scripted, so that only the sidecar and its store work; the memory store beside it."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from .child import Child
from .report import Baseline, Figure, interleaved
from .workspace import Durability, Workspace, frames, request

_AT_ONCE: Final = 32
_ENDED: Final = b'"result":{"runId"'
_STORES: Final[tuple[Durability, ...]] = ("memory", "normal", "full")


def measure(workspace: Workspace) -> list[Figure]:
    """One session alone, then many sessions at once: their commits share a sync."""
    with ExitStack() as children:
        sidecars: dict[Durability, Child] = {
            name: children.enter_context(workspace.ready_sidecar(name)) for name in _STORES
        }
        return [
            figure
            for sessions in (1, _AT_ONCE)
            for figure in _compare(workspace, sidecars, [f"{sessions}-{number}" for number in range(sessions)])
        ]


def _compare(workspace: Workspace, sidecars: dict[Durability, Child], sessions: Sequence[str]) -> list[Figure]:
    for sidecar in sidecars.values():
        for session in sessions:
            sidecar.ask(request(2, "createSession", sessionId=session, model="scripted:echo"))
    rounds = workspace.times(40, 15) if len(sessions) == 1 else workspace.times(3, 1)
    memory, *stored = interleaved(
        workspace.times(8, 3), *(_rate(sidecar, sessions, rounds) for sidecar in sidecars.values())
    )
    where = "one session" if len(sessions) == 1 else f"{len(sessions)} sessions at once"
    baseline = Baseline("store in memory", memory)
    return [
        Figure(f"runs, {where}, durability {name}", "/s", rates, baseline)
        for name, rates in zip(_STORES[1:], stored, strict=True)
    ]


def _rate(sidecar: Child, sessions: Sequence[str], rounds: int) -> Callable[[], float]:
    """A round is one run in each session; it ends before the next begins."""
    data = frames(*(request(number, "run", sessionId=name, input="hello") for number, name in enumerate(sessions)))

    def sample() -> float:
        began = time.perf_counter()
        for _ in range(rounds):
            sidecar.write(data)
            sidecar.skip_to(_ENDED, len(sessions))
        return rounds * len(sessions) / (time.perf_counter() - began)

    return sample
