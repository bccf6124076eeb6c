"""Server-sent events out of bytes, however they are cut. It knows nothing of models.

More tolerant than the standard where servers are: data that is still open when the body ends counts, too.
"""

from typing import Final

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024


class EventTooLarge(ValueError):
    """One event is over `MAX_EVENT_BYTES`."""


class SseParser:
    """Feed it bytes; it gives the data of each event that is whole."""

    def __init__(self) -> None:
        self.comment_only = False
        """Whether the last piece held nothing but comments and blank lines: no sign of life."""
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that this piece completes.

        Raises:
            EventTooLarge: one event is too large.
        """
        piece = self._with_plain_newlines(piece)
        if not piece:
            return []
        if b"\n" not in piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            self._check_size()
            self.comment_only = self._tail[0].startswith(b":")
            return []
        lines = (b"".join(self._tail) + piece).split(b"\n")
        rest = lines.pop()
        self._tail = [rest] if rest else []
        self._tail_size = len(rest)
        held = len(self._data)
        events = self._take(lines)
        self._check_size()
        self.comment_only = not events and len(self._data) <= held and (not rest or rest.startswith(b":"))
        return events

    def finish(self) -> list[bytes]:
        """What is left when the body ends: a last line and event that nothing closed."""
        lines = [b"".join(self._tail), b""]
        self._tail, self._tail_size = [], 0
        return self._take(lines)

    def _with_plain_newlines(self, piece: bytes) -> bytes:
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in piece else piece

    def _take(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        if not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._data_size += len(line)
            elif not line and data:
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._data_size = 0
        return events

    def _check_size(self) -> None:
        if self._tail_size + self._data_size > MAX_EVENT_BYTES:
            raise EventTooLarge("one event of the stream is too large")
