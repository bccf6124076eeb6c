"""Cuts a byte stream into message bodies, and wraps a body for the wire. Does no I/O and does not look at the JSON."""

import re
from typing import Final, Literal, NamedTuple

from .peek import HEAD_BYTES, peek

Framing = Literal["header", "ndjson"]
FaultKind = Literal["badHeader", "tooLarge", "truncated"]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
MAX_HEADER_BYTES: Final = 8 * 1024

# A length beyond this is a broken header: nothing is skipped on its word, or one wrong digit would deafen us for good.
_ABSURD_LENGTH: Final = 16 * MAX_MESSAGE_BYTES
_BLANK: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_PLAIN_HEADER: Final = re.compile(rb"Content-Length: ([0-9]{1,18})\r\n\r\n")
_HEADER_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# Bounded, so that a short tail of the garbage is enough to find it across any cut of the stream.
_LENGTH_LINE: Final = re.compile(rb"content-length[ \t]{0,8}:[ \t]{0,8}[0-9]{1,18}[ \t]{0,8}\r?\n", re.IGNORECASE)
_TAIL_BYTES: Final = 64


class Fault(NamedTuple):
    """A message that could not be received. The stream goes on after it, unless it is `fatal`."""

    kind: FaultKind
    reason: str
    limit: int | None = None
    """`tooLarge`: the most bytes that a message may have."""
    request_id: int | str | None = None
    """`tooLarge`: the id of the request, where it stood in the first bytes; else None."""
    response_id: int | str | None = None
    """`tooLarge`: the id that the message answers, if it was the answer to a request of ours."""

    @property
    def fatal(self) -> bool:
        """Whether nothing can follow: the stream ended inside a message."""
        return self.kind == "truncated"


Item = bytes | Fault
"""What a parser yields: the body of a message, or the fault that stands in its place."""


def encode(body: bytes, framing: Framing) -> bytes:
    """Wrap one JSON text for the wire."""
    if framing == "header":
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    if b"\n" in body:  # legal JSON, where it is white space; inside a string it cannot stand
        body = body.replace(b"\n", b" ")
    return body + b"\n"


class FrameParser:
    """An incremental parser of one byte stream. Any cut of the same bytes yields the same items.

    Header framing takes names in any case and order, unknown headers, LF for CRLF, and a colon without a blank.
    A body over the cap is skipped without being kept; after a broken header the parser goes on at the next
    line that can only be a length.
    """

    def __init__(
        self,
        framing: Literal["auto", "header", "ndjson"] = "auto",
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        max_header_bytes: int = MAX_HEADER_BYTES,
    ) -> None:
        self.framing: Framing | None = None if framing == "auto" else framing
        """The framing in use; None until the first byte that is not blank."""
        self._max_message = max_message_bytes
        self._max_header = max_header_bytes
        self._step = self._start
        self._rest = b""  # an unfinished piece of header; never more than the header cap
        self._reset_header()
        self._body = bytearray()  # an unfinished body or line
        self._missing = 0  # bytes until the end of the body that is collected or skipped
        self._oversize: bytearray | None = None  # the head of a body that is skipped, until its fault is reported
        self._items: list[Item] = []

    def feed(self, data: bytes) -> list[Item]:
        """Take the next bytes and give what they complete, in order."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        position = 0
        while position < len(data):
            position = self._step(data, position)
        items, self._items = self._items, []
        return items

    def finish(self) -> list[Item]:
        """Take the end of the stream: a last line needs no newline, a frame that was cut is a fault."""
        step = self._step
        if step == self._line:
            self._end_line(bytes(self._body))
        elif step == self._collect or (step == self._headers and (self._rest.strip() or self._header_used)):
            self._items.append(Fault("truncated", "the stream ended inside a frame"))
        elif self._oversize is not None:
            self._report_oversize()
        self._rest, self._body = b"", bytearray()
        self._step = self._ended
        items, self._items = self._items, []
        return items

    # Each step takes the bytes from `position` on, and returns where the next step begins.

    def _start(self, data: bytes, position: int) -> int:
        """Skip blanks and a byte order mark (PowerShell writes one), and settle the framing."""
        while position < len(data) and data[position] in _BLANK:
            position += 1
        head = data[position : position + len(_BOM)]
        if head == _BOM:
            return position + len(_BOM)
        if _BOM.startswith(head):
            self._rest = head
            return len(data)
        if self.framing is None:
            self.framing = "ndjson" if head[:1] in b"{[" else "header"
        self._step = self._line if self.framing == "ndjson" else self._headers
        return position

    def _headers(self, data: bytes, position: int) -> int:
        """Read header lines up to the blank one; whole frames of the plain form are taken without leaving the loop."""
        while self._header_used == 0 and (plain := _PLAIN_HEADER.match(data, position)):
            length, begin = int(plain[1]), plain.end()
            if length > self._max_message or len(data) - begin < length:
                break
            position = begin + length
            self._items.append(data[begin:position])
        end = data.find(b"\n", position) + 1
        size = (end or len(data)) - position
        if self._header_used + size > self._max_header:
            self._fail(f"a header block exceeds {self._max_header} bytes")
            return position + 1
        if not end:
            self._rest = data[position:]
            return len(data)
        if data[position:end].strip():
            return self._header_line(data, position, end)
        if self._header_used:  # a blank line before the first header is tolerated
            self._end_headers()
        return end

    def _header_line(self, data: bytes, begin: int, end: int) -> int:
        name, colon, value = data[begin:end].partition(b":")
        name, value = name.rstrip(), value.strip()
        if not colon or not _HEADER_NAME.fullmatch(name):
            return self._fail("a line is no header", begin + 1)
        if name.lower() == b"content-length":
            if not value.isdigit() or len(value) > 18:
                return self._fail("Content-Length is no length", begin + 1)
            if self._length not in (None, int(value)):
                return self._fail("Content-Length is given twice", begin + 1)
            self._length = int(value)
        self._header_used += end - begin
        return end

    def _end_headers(self) -> None:
        length = self._length
        self._reset_header()
        if length is None:
            self._fail("Content-Length is missing")
        elif length > max(_ABSURD_LENGTH, self._max_message):
            self._fail("Content-Length is beyond any message")
        elif length > self._max_message:
            self._missing, self._oversize = length, bytearray()
            self._step = self._skip
        elif length:
            self._missing = length
            self._step = self._collect
        else:
            self._items.append(b"")

    def _collect(self, data: bytes, position: int) -> int:
        """Collect the body of a frame."""
        end = min(position + self._missing, len(data))
        self._missing -= end - position
        if self._missing:
            self._body += memoryview(data)[position:end]
            return end
        if self._body:
            self._body += memoryview(data)[position:end]
            self._items.append(bytes(self._body))
            self._body = bytearray()
        else:
            self._items.append(data[position:end])
        self._step = self._headers
        return end

    def _skip(self, data: bytes, position: int) -> int:
        """Pass over the body of a frame that is over the cap; keep no more than its head."""
        end = min(position + self._missing, len(data))
        self._missing -= end - position
        if self._oversize is not None:
            self._oversize += data[position : min(end, position + HEAD_BYTES - len(self._oversize))]
            if len(self._oversize) == HEAD_BYTES or not self._missing:
                self._report_oversize()
        if not self._missing:
            self._step = self._headers
        return end

    def _search(self, data: bytes, position: int) -> int:
        """Look for the next line that can only be a length."""
        if found := _LENGTH_LINE.search(data, position):
            self._step = self._headers
            return found.start()
        self._rest = data[max(position, len(data) - _TAIL_BYTES) :]
        return len(data)

    def _line(self, data: bytes, position: int) -> int:
        """Collect lines of JSON."""
        while (end := data.find(b"\n", position)) >= 0:
            if self._body:
                self._body += memoryview(data)[position:end]
                line, self._body = bytes(self._body), bytearray()
            else:
                line = data[position:end]
            position = end + 1
            self._end_line(line)
        self._body += memoryview(data)[position:]
        if len(self._body) > max(self._max_message + 1, HEAD_BYTES):  # one more: the CR may be the line's end
            self._oversize, self._body = self._body[:HEAD_BYTES], bytearray()
            self._report_oversize()
            self._step = self._skip_line
        return len(data)

    def _end_line(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if len(line) > self._max_message:
            self._oversize = bytearray(line[:HEAD_BYTES])
            self._report_oversize()
        elif line.strip():
            self._items.append(line)

    def _skip_line(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position) + 1
        if end:
            self._step = self._line
        return end or len(data)

    def _ended(self, data: bytes, position: int) -> int:
        """Nothing follows the end of the stream."""
        del position
        return len(data)

    def _fail(self, reason: str, resume_at: int = 0) -> int:
        """Report a broken header once, and look for the next one."""
        self._items.append(Fault("badHeader", reason))
        self._reset_header()
        self._step = self._search
        return resume_at

    def _reset_header(self) -> None:
        self._header_used = 0
        self._length: int | None = None

    def _report_oversize(self) -> None:
        head = peek(bytes(self._oversize or b""))
        self._oversize = None
        reason = f"a message exceeds {self._max_message} bytes"
        self._items.append(Fault("tooLarge", reason, self._max_message, head.request_id, head.response_id))
