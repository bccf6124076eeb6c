"""What work costs a process besides time: the CPU seconds of all its threads. Says nothing of its children."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .child import Child


class Metered:
    """A measure that also notes how much CPU time its process took for one of the measured things."""

    def __init__(self, child: Child, count: int, work: Callable[[], float]) -> None:
        """`work`: takes a sample of `count` things."""
        self._child = child
        self._count = count
        self._work = work
        self._spent: list[float] = []

    def __call__(self) -> float:
        """The sample."""
        before = cpu_seconds(self._child.pid)
        sample = self._work()
        self._spent.append((cpu_seconds(self._child.pid) - before) / self._count * 1e6)
        return sample

    @property
    def cpu_us(self) -> list[float]:
        """Microseconds of CPU for one, each sample's mean; the first sample warmed up and is dropped."""
        return self._spent[1:]


def cpu_seconds(pid: int) -> float:
    """CPU time of the threads that a process has now. Threads that come and go in between fall out of a difference."""
    if sys.platform == "linux":
        threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9
    spent = subprocess.run(("ps", "-o", "time=", "-p", str(pid)), capture_output=True, text=True, check=True).stdout
    seconds = 0.0
    for part in spent.strip().split(":"):
        seconds = seconds * 60 + float(part)
    return seconds
