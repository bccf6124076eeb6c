"""The body of an answer as JSON values: a stream of events, or one document. It does no I/O and does not know the API.

Fed bytes as they come; what it gives does not depend on where they were cut.
"""

from collections.abc import Iterator
from typing import Any, Final

from sidecar.errors import ModelBadStream

from .json_text import parse
from .sse import EventTooLarge, SseParser

MAX_BODY_BYTES: Final = 512 * 1024 * 1024
"""Longest body of one answer, protocol overhead included."""


class BodyReader:
    """One body."""

    def __init__(self, endpoint: str) -> None:
        self.done = False
        """Nothing after this point counts: `[DONE]` was read, or the API's own ending."""
        self.is_alive = False
        """Whether the last bytes were a sign of life; comments are none."""
        self._endpoint = endpoint
        self._sse = SseParser()
        self._document: list[bytes] | None = None
        self._begun = False
        self._size = 0

    @property
    def is_document(self) -> bool:
        """A server answered a stream request with one JSON document."""
        return self._document is not None

    def feed(self, piece: bytes) -> Iterator[Any]:
        """The events that these bytes complete.

        Raises:
            ModelBadStream: the bytes are no events; those before in the same bytes come first.
        """
        self._size += len(piece)
        if self._size > MAX_BODY_BYTES:
            raise self.bad(f"the answer is longer than {MAX_BODY_BYTES} bytes")
        if not self._begun:
            self._begin(piece)
        if self._document is not None:
            self._document.append(piece)
            self.is_alive = bool(piece.strip())
            return
        try:
            events = self._sse.feed(piece)
        except EventTooLarge as error:
            raise self.bad(str(error)) from None
        self.is_alive = not self._sse.comment_only
        yield from self._read(events)

    def finish(self) -> Iterator[Any]:
        """The events that are left when the body has ended, or the document.

        Raises:
            ModelBadStream: as `feed`.
        """
        if self._document is not None:
            yield self._parse(b"".join(self._document))
        else:
            yield from self._read(self._sse.finish())

    def bad(self, what: str) -> ModelBadStream:
        """The error that the body is no answer, named for its endpoint."""
        return ModelBadStream(f"endpoint {self._endpoint!r}: {what}")

    def incomplete(self) -> ModelBadStream:
        """The error that the body ended before the answer did."""
        return self.bad(f"the stream {'ended before the answer was complete' if self._size else 'was empty'}")

    def _begin(self, piece: bytes) -> None:
        """Tell a stream from a document by the first byte that says anything."""
        first = piece.lstrip()[:1]
        if not first:
            return
        self._begun = True
        if first in b"{[":
            self._document = []
        elif first == b"<":
            raise self.bad("the endpoint answered with a web page; check base_url (it usually ends in /v1)")

    def _read(self, events: list[bytes]) -> Iterator[Any]:
        for data in events:
            if self.done:
                return
            try:
                value = parse(data)
            except ValueError:
                yield from self._read_lines(data.strip())
            else:
                yield value

    def _read_lines(self, data: bytes) -> Iterator[Any]:
        """What is no JSON as a whole: `[DONE]`, or events that no blank line parts."""
        for line in filter(None, map(bytes.strip, data.split(b"\n"))):
            if self.done:
                return
            if line == b"[DONE]":
                self.done = True
            else:
                yield self._parse(line)

    def _parse(self, data: bytes) -> Any:
        try:
            return parse(data)
        except ValueError:
            raise self.bad("a part of the stream is no JSON") from None
