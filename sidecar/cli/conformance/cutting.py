"""Writes bytes in pieces that end where no message does: a reader that trusts in reads to be messages is found out."""

import time
from collections.abc import Callable
from itertools import cycle
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

_HELD_BACK: Final = (1, 3, 17, 2, 64, 9)
"""How many bytes of a message wait for the next one."""
_PAUSE_S: Final = 0.002
"""Long enough for a reader to see a piece alone."""


class Cutter:
    """Takes messages, and writes them from a thread of its own."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """`write`: writes all of a piece."""
        self._write = write
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Write a message, soon."""
        self._queue.put(data)

    def finish(self) -> None:
        """Nothing more will come; wait until all is written."""
        self._queue.put(b"")
        self._thread.join()

    def _work(self) -> None:
        rest = b""
        for held_back in cycle(_HELD_BACK):
            try:
                data = self._queue.get(timeout=_PAUSE_S if rest else None)
            except Empty:
                self._write(rest)
                rest = b""
                continue
            if not data:
                break
            whole = rest + data
            end = max(0, len(whole) - held_back)
            if 0 < (inside := _inside_character(whole)) < end:
                self._write(whole[:inside])
                time.sleep(_PAUSE_S)
            else:
                inside = 0
            self._write(whole[inside:end])
            rest = whole[end:]
        self._write(rest)


def _inside_character(data: bytes) -> int:
    """A place within the first character of several bytes; 0 if there is none."""
    return next((place + 1 for place, byte in enumerate(data) if byte >= 0x80), 0)
