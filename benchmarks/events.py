"""Streamed events a second: a scripted run of many small deltas; the raw echo sending equally long frames beside it."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from .child import Child
from .raw_echo import BLAST, frame
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace, request

_AIM: Final = Aim(
    ">=",
    0.25,
    "The echo repeats bytes. An event comes through the model's stream, its metering and the run, gets its number and "
    "its time, is serialised, and the run looks whether the client keeps up.",
)
_DELTA: Final = b'"type":"message.delta"'
_ENDED: Final = b'"result":{"runId"'


def measure(workspace: Workspace) -> list[Figure]:
    """From the first delta on the pipe to the last; what comes before and after is the run's, not the stream's."""
    count = workspace.times(20_000, 10_000)
    script = workspace.folder / "deltas.toml"
    script.write_text(f"[[reply]]\nwhen = 'go'\ntext = {['word '] * count}\n", encoding="utf-8")
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar())
        echo = children.enter_context(workspace.echo())
        event = _one_delta(sidecar, f"scripted:{script}")
        blasted, streamed = interleaved(
            workspace.times(12, 4), _blast(echo, count, event), _stream(sidecar, count, f"scripted:{script}")
        )
    name = f"streamed events of {len(event)} bytes"
    return [Figure(name, "/s", streamed, Baseline("raw echo, as long", blasted), _AIM)]


def _one_delta(sidecar: Child, model: str) -> bytes:
    """An event as the sidecar sends it."""
    sidecar.write(frame(request(2, "run", input="go", options={"model": model})))
    while _DELTA not in (body := sidecar.read_frame()):
        pass
    sidecar.skip_to(_ENDED)
    return body


def _stream(sidecar: Child, count: int, model: str) -> Callable[[], float]:
    ask = frame(request(2, "run", input="go", options={"model": model}))

    def sample() -> float:
        sidecar.write(ask)
        arrivals = sidecar.skip_to(_DELTA, count)
        sidecar.skip_to(_ENDED)
        return arrivals.a_second

    return sample


def _blast(echo: Child, count: int, event: bytes) -> Callable[[], float]:
    ask = frame(BLAST % (count, event))

    def sample() -> float:
        echo.write(ask)
        return echo.skip_to(_DELTA, count).a_second

    return sample
