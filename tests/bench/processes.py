"""What the system tells of a process: its memory, handles and children, and its end. Linux only; tests only."""

import asyncio
import contextlib
import os
import select
from pathlib import Path


async def gone(pid: int) -> None:
    """Wait until a process has ended, whether or not its output was read and its end was collected."""

    def wait() -> None:
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            try:
                select.select([process], [], [])
            finally:
                os.close(process)

    await asyncio.to_thread(wait)


def rss_bytes(pid: int) -> int:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    """How many descriptors are open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    """How many threads there are."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def descendants(pid: int) -> list[int]:
    """The processes that any of its threads has started, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def children(pid: int) -> list[str]:
    """The processes that it has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
