"""What a tool tells while it works, sent on from whichever thread it is in, in bounded pieces. Stores nothing."""

import asyncio
import threading
from typing import Final

from .sink import RunSink

MOST_WAITING: Final = 64 * 1024
"""Characters that may wait to be sent; what a tool says beyond that is left out, and told."""


class ToolProgress:
    """One call's way to its host."""

    def __init__(self, sink: RunSink, call_id: str) -> None:
        self._sink = sink
        self._call_id = call_id
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._size = 0
        self._left_out = 0
        self._closed = False

    def write(self, text: str) -> None:
        """Send some text on (`tool.delta`). May be called from any thread; never blocks."""
        with self._lock:
            if self._closed:
                return
            is_first = not self._waiting
            room = MOST_WAITING - self._size
            self._left_out += max(len(text) - room, 0)
            kept = text[:room]
            if not kept:
                return
            self._waiting.append(kept)
            self._size += len(kept)
        if is_first:
            try:
                self._loop.call_soon_threadsafe(self._flush)
            except RuntimeError:  # the loop has ended before an abandoned tool
                self._closed = True

    def close(self) -> None:
        """The call has ended: send what waits, and hear no more."""
        self._flush()
        with self._lock:
            self._closed = True

    def _flush(self) -> None:
        with self._lock:
            text, self._waiting = "".join(self._waiting), []
            left_out, self._size, self._left_out = self._left_out, 0, 0
            closed = self._closed
        if left_out:
            text += f"\n[{left_out} characters left out]\n"
        if text and not closed:
            self._sink.ephemeral("tool.delta", {"callId": self._call_id, "text": text})
