"""Requests: the round trip of one, and how many a second with many in flight; the raw echo beside them."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from .child import Child, one_core
from .raw_echo import frame
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace, frames, request

_AIM: Final = Aim(
    "<=",
    1.5,
    "The echo parses no JSON. A request is parsed, validated, given its place in its session's order, run in a task of "
    "its own (so that it can be cancelled), and its typed result serialised.",
)
_IN_FLIGHT: Final = 64
_IS_ANSWERED: Final = b'"jsonrpc"'
"""Once in every answer, and in every echo."""

_SMALLEST: Final = request(2, "cancelRun", sessionId="bench")
_PROBE: Final = request(2, "getState", include=[])
_FULL: Final = request(2, "getState", sessionId="bench")


def measure(workspace: Workspace) -> list[Figure]:
    """The smallest request, a health probe and a whole `getState` against an echo; the smallest one in bulk."""
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar())
        echo = children.enter_context(workspace.echo())
        sidecar.ask(request(2, "createSession", sessionId="bench", model="scripted:echo"))
        times = workspace.times(30, 8)
        with one_core(sidecar, echo):
            echoed, smallest, probe, full = interleaved(
                times,
                _round_trip(workspace, echo, _SMALLEST),
                _round_trip(workspace, sidecar, _SMALLEST),
                _round_trip(workspace, sidecar, _PROBE),
                _round_trip(workspace, sidecar, _FULL),
            )
        echoed_rate, rate = interleaved(times, _rate(workspace, echo), _rate(workspace, sidecar))
    one = Baseline("raw echo", echoed)
    return [
        Figure("round trip: cancelRun, a small request", "us", smallest, one, _AIM),
        Figure("round trip: getState as a health probe", "us", probe, one, _AIM),
        Figure("round trip: getState of a session, all of it", "us", full, one),
        Figure(f"requests, {_IN_FLIGHT} in flight", "/s", rate, Baseline("raw echo", echoed_rate)),
    ]


def _round_trip(workspace: Workspace, child: Child, body: bytes) -> Callable[[], float]:
    """Microseconds from writing a request to having its answer: the median of a short series.

    Not its mean: a neighbour that takes the core for its time slice would be all that one saw.
    """
    data = frame(body)

    def round_trip() -> float:
        began = time.perf_counter()
        child.write(data)
        child.read_frame()
        return time.perf_counter() - began

    def sample() -> float:
        return statistics.median(round_trip() for _ in range(workspace.times(200, 100))) * 1e6

    return sample


def _rate(workspace: Workspace, child: Child) -> Callable[[], float]:
    """Requests a second, written in batches: a batch is answered before the next one is written."""
    batches = workspace.times(30, 10)
    batch = frames(*(request(number, "cancelRun", sessionId="bench") for number in range(_IN_FLIGHT)))

    def sample() -> float:
        began = time.perf_counter()
        for _ in range(batches):
            child.write(batch)
            child.skip_to(_IS_ANSWERED, _IN_FLIGHT)
        return batches * _IN_FLIGHT / (time.perf_counter() - began)

    return sample
