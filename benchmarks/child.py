"""A process driven over its pipes with blocking calls: one lean client for the sidecar and for every baseline."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from .raw_echo import frame

_HEADER: Final = re.compile(rb"Content-Length: ([0-9]+)\r\n\r\n")
_READ_BYTES: Final = 1 << 16
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PATIENCE_S: Final = 60.0
"""A child that is still there after this is killed: its pipes end, and the benchmark fails instead of hanging."""


class Arrivals(NamedTuple):
    """When things arrived, on the performance counter."""

    first: float
    last: float
    after_first: int
    """How many came after the read that brought the first."""

    @property
    def a_second(self) -> float:
        """Their rate."""
        return self.after_first / (self.last - self.first)


@contextmanager
def one_core(*children: "Child") -> Generator[None]:
    """Keep the children and this process on one core, where the system can.

    A round trip then costs the work of both and two switches. Across cores it costs, as the machine's mood is, one to
    ten times that for waking a core that sleeps, which would drown the difference between two servers.
    """
    if sys.platform != "linux":
        yield
        return
    processes = (0, *(child.pid for child in children))
    cores = os.sched_getaffinity(0)
    for process in processes:
        os.sched_setaffinity(process, {max(cores)})
    try:
        yield
    finally:
        for process in processes:
            os.sched_setaffinity(process, cores)


class ChildEnded(Exception):
    """The process closed its output before it had answered."""


class Child:
    """Starts the process at once; `born` is the clock just before that."""

    def __init__(self, command: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> None:
        self.born = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=cwd, env=env
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise ChildEnded("the process has no pipes")
        self._inbound, self._outbound = self._process.stdout, self._process.stdin
        self._input, self._output = self._inbound.fileno(), self._outbound.fileno()
        self._rest = b""
        self._watchdog = threading.Timer(_PATIENCE_S, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write bytes that are framed already."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._output, rest) :]

    def read_some(self) -> bytes:
        """What the pipe holds, at least one byte.

        Raises:
            ChildEnded: there will be no more.
        """
        data = os.read(self._input, _READ_BYTES)
        if not data:
            raise ChildEnded(f"the process ended with exit code {self._process.wait()}")
        return data

    def ask(self, body: bytes) -> bytes:
        """Send one body in a header frame, and read the next frame's body."""
        self.write(frame(body))
        return self.read_frame()

    def read_frame(self) -> bytes:
        """The body of the next frame that begins: after `skip_to`, what is left of a frame is passed over."""
        data, self._rest = self._rest, b""
        while True:
            header = _HEADER.search(data)
            if header is not None:
                end = header.end() + int(header[1])
                if len(data) >= end:
                    self._rest = data[end:]
                    return data[header.end() : end]
            data += self.read_some()

    def skip_to(self, needle: bytes, count: int = 1) -> Arrivals:
        """Pass over everything up to the count-th needle, counting bytes without parsing frames."""
        data, self._rest = self._rest, b""
        seen = at_first = 0
        first = 0.0
        while True:
            found = data.count(needle)
            if found:
                last = time.perf_counter()
                if not seen:
                    at_first, first = found, last
                seen += found
                if seen >= count:
                    self._rest = data[data.rfind(needle) + len(needle) :]
                    return Arrivals(first, last, seen - at_first)
            data = data[max(0, len(data) - len(needle) + 1) :] + self.read_some()

    def rss_bytes(self) -> int:
        """Resident memory of the process."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
        except FileNotFoundError:  # macOS
            command = ["ps", "-o", "rss=", "-p", str(self.pid)]
            return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._outbound.close()
        self._inbound.close()
        self._process.kill()
        self._process.wait()
        self._watchdog.cancel()
