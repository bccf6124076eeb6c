"""What a tool tells while it works, sent on from whichever thread it is in, in bounded pieces. Stores nothing."""

import asyncio
import threading
from typing import Final, cast

from providers.api.clean_text import clean_text

from .sink import RunSink

MOST_WAITING: Final = 64 * 1024
"""Characters that may wait to be sent; what a tool says beyond that is left out, and told."""
AGAIN_AFTER_S: Final = 0.05
"""A host that is far behind in reading is tried again after this."""


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
        """Send some text on (`tool.delta`). May be called from any thread; never blocks.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(cast("object", text), str):
            raise TypeError(f"progress is text, not {type(text).__name__}")
        with self._lock:
            if self._closed:
                return
            is_first = not self._waiting
            kept = text[: MOST_WAITING - self._size]
            self._left_out += len(text) - len(kept)
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
        with self._lock:
            self._closed = True
        self._send()

    def _flush(self) -> None:
        """Send what waits, unless the host has enough to read; the call goes on."""
        if self._closed:
            return
        if self._sink.congested:
            self._loop.call_later(AGAIN_AFTER_S, self._flush)
        else:
            self._send()

    def _send(self) -> None:
        with self._lock:
            text, self._waiting = clean_text("".join(self._waiting)), []
            left_out, self._size, self._left_out = self._left_out, 0, 0
        if left_out:
            text += f"\n[{left_out} characters left out]\n"
        if text:
            self._sink.ephemeral("tool.delta", {"callId": self._call_id, "text": text})
