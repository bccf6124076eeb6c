"""Named points at which a test may kill this process. Nothing happens in a process that is not under test.

With `AGENT_SIDECAR_TESTING=1` and `AGENT_SIDECAR_CRASH_AT=name:n` the process kills itself, as a power cut would, when
it comes through the named point for the n-th time.
"""

import itertools
import os
import signal
from typing import Final, Literal, get_args

Point = Literal[
    "store.migrate.before",
    "store.migrate.after",
    "store.commit.before",
    "store.commit.after",
    "session.create.before",
    "session.create.after",
    "recovery.before",
    "recovery.after",
    "run.begin.before",
    "run.begin.after",
    "approval.open.before",
    "approval.open.after",
    "approval.decide.before",
    "approval.decide.after",
    "tool.intent.before",
    "tool.intent.after",
    "tool.effect.after",
    "run.end.before",
    "run.end.after",
    "event.sent.before",
    "event.sent.after",
    "answer.before",
    "answer.after",
]
"""Before and after: what changes the store, a unit's events on their way to the client, an answer."""

POINTS: Final[tuple[Point, ...]] = get_args(Point)


def _armed() -> tuple[str, int] | None:
    if os.environ.get("AGENT_SIDECAR_TESTING") != "1":
        return None
    name, colon, count = os.environ.get("AGENT_SIDECAR_CRASH_AT", "").rpartition(":")
    return (name, int(count)) if colon else None


_ARMED: Final = _armed()
_passes: Final = itertools.count(1)


def reached(name: Point) -> None:
    """Say that the process has come to a named point: before or after a durable write, an effect, an answer."""
    if _ARMED is not None and name == _ARMED[0] and next(_passes) == _ARMED[1]:
        os.kill(os.getpid(), signal.SIGKILL)
