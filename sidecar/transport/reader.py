"""The incoming side: bytes from one read transport to parsed items. Decides nothing about them."""

import asyncio
from collections.abc import Callable
from typing import cast

from .framing import FrameParser, Item


class Reader(asyncio.Protocol):
    """Parses what one read transport receives. Every method belongs to the loop's thread."""

    def __init__(self, parser: FrameParser, *, on_item: Callable[[Item], None], on_eof: Callable[[], None]) -> None:
        self._parser = parser
        self._on_item = on_item
        self._on_eof = on_eof
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False
        self._ended = False
        self.closed = asyncio.Event()
        """Set when the transport has let go of its descriptor."""

    def pause(self, pause: bool) -> None:
        """Stop or go on reading."""
        self._paused = pause
        if self._transport and not self._ended:
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def end(self) -> None:
        """Stop for good; no end of input is reported."""
        self._ended = True
        if self._transport and not self.closed.is_set():
            self._transport.close()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.ReadTransport", transport)
        if self._paused:
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Hand on what is complete."""
        if not self._ended:
            for item in self._parser.feed(data):
                self._on_item(item)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of input; a read error is one as well, since nothing can follow it."""
        del exc
        self.closed.set()
        if not self._ended:
            self._ended = True
            for item in self._parser.finish():
                self._on_item(item)
            self._on_eof()
