"""The connection to the client: one parser, one reader and one writer over two descriptors. Knows no method."""

import asyncio
import io
import os
import stat
import sys
import weakref
from contextlib import suppress
from typing import Final, Literal, Protocol

from .framing import MAX_HEADER_BYTES, MAX_MESSAGE_BYTES, Fault, FrameParser, Framing, Item, encode
from .reader import Reader
from .threads import ThreadReadTransport, ThreadWriteTransport
from .writer import Writer, WriterLimits

THREADS_VARIABLE: Final = "AGENT_SIDECAR_TRANSPORT"
"""Set to `threads`, it keeps the loop from polling the descriptors; for tests and for odd platforms."""

_STDERR: Final = 2


class Receiver(Protocol):
    """Who is told what comes in. Called on the loop's thread; never blocks."""

    def on_message(self, body: bytes) -> None:
        """A whole message body, not yet parsed."""
        ...

    def on_fault(self, fault: Fault) -> None:
        """A message that could not be received."""
        ...

    def on_eof(self) -> None:
        """The client will send nothing more. Called once, after everything that came before it."""
        ...

    def on_gone(self, why: str) -> None:
        """Nobody will ever read what we send. Called once; what is sent from now on is dropped."""
        ...


class Tap(Protocol):
    """Who is told what goes over a connection, both ways, before it is acted on. Never blocks and never fails."""

    def received(self, item: Item) -> None:
        """A message body, or the fault that stands in its place."""
        ...

    def sent(self, body: bytes) -> None:
        """A message body of ours."""
        ...

    def eof(self) -> None:
        """As `Receiver.on_eof`."""
        ...

    def gone(self, why: str) -> None:
        """As `Receiver.on_gone`."""
        ...


class Connection:
    """Frames in, frames out, in order. It owns both descriptors from `start` on.

    Reading stops while more than `limits.pause_reading_above` bytes wait to be written: a client that does not
    read its answers is not given more to answer.
    """

    def __init__(
        self,
        inbound: int,
        outbound: int,
        *,
        framing: Literal["auto", "header", "ndjson"] = "auto",
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        max_header_bytes: int = MAX_HEADER_BYTES,
        initial: bytes = b"",
        limits: WriterLimits | None = None,
        threads: bool | None = None,
        tap: Tap | None = None,
    ) -> None:
        self._inbound, self._outbound = inbound, outbound
        self._parser = FrameParser(framing, max_message_bytes, max_header_bytes)
        self._initial = initial
        self._limits = limits or WriterLimits()
        self._threads = os.environ.get(THREADS_VARIABLE) == "threads" if threads is None else threads
        self._tap = tap
        self._was_blocking: dict[int, bool] = {}
        self._receiver: Receiver
        self._reader: Reader
        self._writer: Writer

    @property
    def framing(self) -> Framing | None:
        """The client's framing; None until its first byte that is not blank."""
        return self._parser.framing

    async def start(self, receiver: Receiver) -> None:
        """Begin to read, with the bytes that were read already."""
        self._receiver = receiver
        self._reader = Reader(self._parser, on_item=self._receive, on_eof=self._eof)
        self._writer = Writer(self._limits, pause_reading=self._reader.pause, on_gone=self._gone)
        _started.add(self)
        # The writer first: the bytes already read may be answered at once.
        await self._connect_writer()
        self._reader.data_received(self._initial)
        self._initial = b""
        await self._connect_reader()

    def send(self, body: bytes) -> None:
        """Queue one JSON text. In order, without blocking; dropped once the client has gone."""
        if self._tap is not None:
            self._tap.sent(body)
        self._writer.send(encode(body, self._parser.framing or "header"))

    def congested(self) -> bool:
        """Whether producers have to wait: `drain` would."""
        return self._writer.congested

    async def drain(self) -> None:
        """For producers: wait while the queue is long."""
        await self._writer.drain()

    async def flush(self, timeout: float) -> bool:
        """Wait until the operating system has taken everything; False if it has not within `timeout` seconds."""
        return await self._writer.flush(timeout)

    def queued_bytes(self) -> int:
        """Bytes sent that the operating system has not taken."""
        return self._writer.queued_bytes()

    async def aclose(self) -> None:
        """Let go of both descriptors, at once: `flush` first. The receiver hears nothing any more."""
        for fd, closed in ((self._inbound, self._reader.closed), (self._outbound, self._writer.closed)):
            if self._was_blocking.get(fd) and not closed.is_set():
                os.set_blocking(fd, True)
        self._reader.end()
        self._writer.end()
        await self._reader.closed.wait()
        await self._writer.closed.wait()

    def forget(self) -> None:
        """Close the copies that a forked child has: the client waits for the end of a process that it has killed."""
        for fd, end in ((self._inbound, self._reader), (self._outbound, self._writer)):
            if not end.closed.is_set():
                with suppress(OSError):
                    os.close(fd)

    async def _connect_reader(self) -> None:
        fd = self._inbound
        if self._needs_thread(fd):
            ThreadReadTransport(self._reader, fd)
        else:
            self._was_blocking[fd] = os.get_blocking(fd)
            await asyncio.get_running_loop().connect_read_pipe(lambda: self._reader, _pipe(fd, "rb"))

    async def _connect_writer(self) -> None:
        fd = self._outbound
        if self._needs_thread(fd):
            ThreadWriteTransport(self._writer, fd)
        else:
            self._was_blocking[fd] = os.get_blocking(fd)
            await asyncio.get_running_loop().connect_write_pipe(lambda: self._writer, _pipe(fd, "wb"))

    def _needs_thread(self, fd: int) -> bool:
        """Whether the loop must not poll the descriptor.

        A loop makes it non-blocking, for everyone who shares its open file description: stderr of the same pipe
        would lose output. On one socket for both ends, the loop takes incoming data for a hang-up of the output.
        """
        if self._threads or sys.platform == "win32":
            return True
        mode = os.fstat(fd).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return True
        return _same_file(fd, _STDERR) or _same_file(self._inbound, self._outbound)

    def _receive(self, item: Item) -> None:
        if self._tap is not None:
            self._tap.received(item)
        try:
            if isinstance(item, Fault):
                self._receiver.on_fault(item)
            else:
                self._receiver.on_message(item)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "the receiver failed on a message", "exception": error}
            )

    def _eof(self) -> None:
        if self._tap is not None:
            self._tap.eof()
        self._receiver.on_eof()

    def _gone(self, why: str) -> None:
        if self._tap is not None:
            self._tap.gone(why)
        # Later: `send` may have found it out, and its caller is in the middle of something.
        asyncio.get_running_loop().call_soon(self._receiver.on_gone, why)


_started: Final[weakref.WeakSet[Connection]] = weakref.WeakSet()


def _in_child() -> None:
    for connection in list(_started):
        connection.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _pipe(fd: int, mode: Literal["rb", "wb"]) -> io.FileIO:
    """A file for the loop's pipe transport, which closes the descriptor when it ends.

    uvloop closes it first and the file afterwards (its issue 763). A second close hits whatever another thread has
    opened under that number in between, such as the store's database.
    """
    closes_it_itself = type(asyncio.get_running_loop()).__module__.partition(".")[0] == "uvloop"
    return io.FileIO(fd, mode, closefd=not closes_it_itself)


def _same_file(fd: int, other: int) -> bool:
    return os.path.sameopenfile(fd, other)
