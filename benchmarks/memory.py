"""Resident memory of an idle process, after `initialize` and after a run; the raw echo beside it."""

from typing import Final

from .raw_echo import frame
from .report import Baseline, Figure, interleaved
from .workspace import Workspace, request

_MEGABYTE: Final = 1e6
_ENDED: Final = b'"result":{"runId"'


def measure(workspace: Workspace) -> list[Figure]:
    """Megabytes, each sample of a new process."""
    echo, idle, after_run = interleaved(
        workspace.times(4, 2),
        lambda: _echo(workspace),
        lambda: _sidecar(workspace, run=False),
        lambda: _sidecar(workspace, run=True),
    )
    baseline = Baseline("raw echo", echo)
    return [
        Figure("idle memory after initialize", "MB", idle, baseline),
        Figure("idle memory after a run", "MB", after_run, baseline),
    ]


def _echo(workspace: Workspace) -> float:
    with workspace.echo() as child:
        child.ask(b"ready?")
        return child.rss_bytes() / _MEGABYTE


def _sidecar(workspace: Workspace, *, run: bool) -> float:
    with workspace.ready_sidecar("full") as child:
        if run:
            child.write(frame(request(2, "createSession", sessionId="bench", model="scripted:echo")))
            child.write(frame(request(3, "run", sessionId="bench", input="hello")))
            child.skip_to(_ENDED)
        return child.rss_bytes() / _MEGABYTE
