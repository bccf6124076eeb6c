"""Named points at which a test may kill this process. Nothing happens in a process that is not under test.

With `AGENT_SIDECAR_TESTING=1` and `AGENT_SIDECAR_CRASH_AT=name:n` the process kills itself, as a power cut would, when
it comes through the named point for the n-th time.
"""

import itertools
import os
import signal
from typing import Final


def _armed() -> tuple[str, int] | None:
    if os.environ.get("AGENT_SIDECAR_TESTING") != "1":
        return None
    name, colon, count = os.environ.get("AGENT_SIDECAR_CRASH_AT", "").rpartition(":")
    return (name, int(count)) if colon else None


_ARMED: Final = _armed()
_passes: Final = itertools.count(1)


def reached(name: str) -> None:
    """Say that the process has come to a named point: before or after a durable write, an effect, an answer."""
    if _ARMED is not None and name == _ARMED[0] and next(_passes) == _ARMED[1]:
        os.kill(os.getpid(), signal.SIGKILL)
