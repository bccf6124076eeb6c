"""The file of a recording: opened for this process alone, written by one thread, given up at its first failure.

The loop hands bodies over and goes on; taking secrets out, encoding and writing are the thread's. What waits for it is
bounded: beyond the bound messages are left out, and a line says how many.
"""

import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal, NamedTuple

from protocol.base import JsonObject
from protocol.version import VERSION
from sidecar.config.known_secrets import Secrets, secrets_of
from sidecar.config.model import Config
from sidecar.errors import new_error_id
from sidecar.sessions.ids import now
from sidecar.telemetry import LOGGER, log_failure
from sidecar.transport.framing import Fault, Item

from .deltas import Deltas
from .lines import ANY, LONGEST, Line, client_lines, comment, sent, sidecar_lines

MOST_WAITING: Final = 32 * 1024 * 1024
"""Bytes of bodies that wait to be written; one that is alone may be longer."""
CLOSE_S: Final = 3.0
"""At the end, what waits gets this long to be written."""

_BEGINNING: Final = b'{"#":"agent-sidecar '
_BATCH_BYTES: Final = 64 * 1024
_TAIL_BYTES: Final = 64 * 1024
_LAST_LINE_BYTES: Final = 64


class NotRecorded(Exception):
    """The file cannot be recorded to; the text says why."""


class _Item(NamedTuple):
    """What the loop hands over: a body, or a line that is ready."""

    source: Literal["client", "sidecar", "line", "end"]
    body: bytes = b""
    line: Line | None = None


_END: Final = _Item("end")


class Recording:
    """One recording; a `sidecar.transport.connection.Tap`. What the loop calls of it neither blocks nor fails."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        """Open the file, or go on with it where an earlier process ended.

        Raises:
            NotRecorded: it is no recording, somebody else's, in use, or cannot be opened.
        """
        self._path = path
        self._secrets = secrets
        self._deltas = Deltas(secrets)
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._put = self._done = 0  # bytes, ever: each is written by one thread only
        self._left_out = 0
        self._stopped = self._gone = self._ended = False
        self._descriptor = _open(path)
        try:
            self._size, has_ended = _end_of_earlier(self._descriptor)
        except (NotRecorded, OSError) as error:
            os.close(self._descriptor)
            raise NotRecorded(error.strerror if isinstance(error, OSError) else str(error)) from error
        if self._size and not has_ended:
            self.add(Line("kill", 9))
        python = sys.version.split()[0]
        self.note(f"agent-sidecar {VERSION}, {now()}, Python {python} on {sys.platform}: the wire, secrets removed")
        self._thread = threading.Thread(target=self._run, name="sidecar-recorder", daemon=True)
        self._thread.start()

    def received(self, item: Item) -> None:
        """The client sent this."""
        if not isinstance(item, Fault):
            self._hand_over(_Item("client", item))
            return
        self.note(f"the next message could not be read: {item.reason}")
        if item.request_id is not None:
            self.add(Line("→", {"id": item.request_id, "method": ANY}))

    def sent(self, body: bytes) -> None:
        """We send this."""
        if not self._gone:
            self._hand_over(_Item("sidecar", body))

    def eof(self) -> None:
        """The client will send nothing more."""
        self.add(Line("eof", True))

    def gone(self, why: str) -> None:
        """Nobody reads what we send: nothing of it is recorded from now on."""
        self.note(why)
        self._gone = True

    def hide(self, config: Config, environ: Mapping[str, str]) -> None:
        """Know the secrets of a configuration, too."""
        self._secrets.add(secrets_of(config, environ))

    def note(self, text: str) -> None:
        """Say something in between."""
        self.add(comment(text))

    def add(self, line: Line) -> None:
        """A line that is neither of the two."""
        self._hand_over(_Item("line", line=line))

    def close(self, code: int) -> None:
        """The process ends with this exit code. Blocks for `CLOSE_S` seconds at most."""
        self.add(Line("exit", code))
        self._queue.put(_END)
        self._thread.join(CLOSE_S)

    # ---- the loop's side ------------------------------------------------------------------------------------------

    def _hand_over(self, item: _Item) -> None:
        if self._stopped:
            return
        size = len(item.body)
        waiting = self._put - self._done
        if size and waiting and waiting + size > MOST_WAITING:
            self._left_out += 1
            return
        if self._left_out:
            missing = comment(
                f"{self._left_out} messages are missing here: they came faster than they could be written"
            )
            self._queue.put(_Item("line", line=missing))
            self._left_out = 0
        self._put += size
        self._queue.put(item)

    # ---- the thread's side ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended:
                self._write(b"".join(self._batch()))
            self._write(b"".join(line.encoded() for line in self._deltas.rest()))
        except OSError as error:
            LOGGER.warning("nothing more is recorded in %s: %s", self._path, error.strerror)
        finally:
            self._stopped = True
            os.close(self._descriptor)
            while not self._queue.empty():
                self._queue.get()

    def _batch(self) -> Iterator[bytes]:
        """The next lines to be written, as long as there are more at once."""
        size = 0
        while not self._ended and (not size or not self._queue.empty()) and size < _BATCH_BYTES:
            item = self._queue.get()
            self._ended = item is _END
            for line in self._lines(item):
                data = line.encoded()
                size += len(data)
                yield data
            self._done += len(item.body)

    def _lines(self, item: _Item) -> Iterable[Line]:
        """What is to be written now. A message that cannot be handled is left out, because it may hold a secret."""
        try:
            return [line for part in self._parts(item) for line in self._deltas.take(*part)]
        except Exception as error:
            log_failure("recording a message", error, new_error_id())
            return self._deltas.take(comment("a message is missing here: it could not be recorded"))

    def _parts(self, item: _Item) -> Iterator[tuple[Line, JsonObject | None]]:
        """The lines of one item, each with the message that it is for where that is one of ours."""
        if item.line is not None:
            yield item.line, None
        elif item is _END:
            return
        elif item.source == "client":
            for line in client_lines(item.body, self._secrets):
                yield line, None
        else:
            message, size = sent(item.body), len(item.body)
            for line in sidecar_lines(message, size, self._secrets):
                yield line, message if size <= LONGEST else None

    def _write(self, lines: bytes) -> None:
        """Write whole lines.

        Raises:
            OSError: one cannot be written; there is nothing of it in the file, if that could be helped.
        """
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size + lines.rfind(b"\n", 0, written) + 1)
            raise
        self._size += written


def _open(path: Path) -> int:
    """A descriptor for a file of this user's that no other process records to.

    Raises:
        NotRecorded: there is none.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError as error:
        raise NotRecorded(f"there is no folder {path.parent}; create it first") from error
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror or "it cannot be opened"
        raise NotRecorded(why) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotRecorded("it is no regular file")
        if sys.platform != "win32":
            if found.st_uid != os.geteuid():
                raise NotRecorded("it belongs to somebody else")
            os.fchmod(descriptor, 0o600)
            _lock(descriptor)
    except (NotRecorded, OSError) as error:
        os.close(descriptor)
        if isinstance(error, NotRecorded):
            raise
        raise NotRecorded(error.strerror or "it cannot be locked") from error
    return descriptor


if sys.platform != "win32":
    import fcntl

    def _lock(descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotRecorded("another sidecar records there; give each a file of its own") from error


def _end_of_earlier(descriptor: int) -> tuple[int, bool]:
    """Where to go on in the file, and whether the process before us says how it ended; else it was killed.

    That is behind the last whole line: such a process may have left half of one.

    Raises:
        NotRecorded: there is something else in it.
        OSError: it cannot be read.
    """
    size = os.fstat(descriptor).st_size
    if not size:
        return 0, True
    os.lseek(descriptor, 0, os.SEEK_SET)
    if os.read(descriptor, len(_BEGINNING)) != _BEGINNING:
        raise NotRecorded("there is something else in it; choose another file")
    end, tail = size, b""
    while b"\n" not in tail and end:
        start = max(0, end - _TAIL_BYTES)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail, end = os.read(descriptor, end - start) + tail, start
    whole = end + tail.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
    os.lseek(descriptor, max(0, whole - _LAST_LINE_BYTES), os.SEEK_SET)
    last = os.read(descriptor, min(whole, _LAST_LINE_BYTES)).rstrip(b"\n").rpartition(b"\n")[2]
    return whole, last.startswith((b'{"exit":', b'{"kill":'))
