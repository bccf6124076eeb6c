"""Ends the processes that code inside this one has started, when this one ends. Linux; elsewhere they are left."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def kill_descendants() -> None:
    """Kill the children of this process, their children, and so on: a tool's child must not outlive its sidecar."""
    for pid in reversed(list(_descendants(os.getpid()))):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> Iterator[int]:
    """Parents before their children. A process that has ended meanwhile has none."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _descendants(child)
