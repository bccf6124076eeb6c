"""The recording that goes on: written into its file by one thread, given up at its first failure.

The loop hands bodies over and goes on; taking secrets out, encoding and writing are the thread's. What waits for it is
bounded: beyond the bound messages are left out, and a line says how many.
"""

import os
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
from sidecar.config.resolved_keys import ignore, listen
from sidecar.errors import new_error_id
from sidecar.sessions.ids import now
from sidecar.telemetry import LOGGER, log_failure
from sidecar.transport.framing import Fault, Item

from .deltas import Deltas
from .lines import ANY, LONGEST, Line, client_lines, comment, sent, sidecar_lines
from .opening import STOPPED, open_recording

MOST_WAITING: Final = 32 * 1024 * 1024
"""Bytes of bodies that wait to be written; one that is alone may be longer."""
CLOSE_S: Final = 3.0
"""At the end, what waits gets this long to be written."""
_LAST_WRITE_S: Final = 0.5
"""And a write that is under way this long to come to its end."""

_BATCH_BYTES: Final = 64 * 1024
_MOST_GIVEN_UP: Final = 2 * LONGEST
"""Bytes of whole lines at the end that make room for the one that says that the recording stopped."""


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
        self._stopped = self._gone = self._ended = self._has_failed = False
        self._writing = threading.Lock()
        self._is_finished = False  # with the lock: the last line is written
        opened = open_recording(path)
        self._descriptor, self._size = opened.descriptor, opened.size
        if opened.was_killed:
            self.add(Line("kill", 9))
        python = sys.version.split()[0]
        self.note(f"agent-sidecar {VERSION}, {now()}, Python {python} on {sys.platform}: the wire, secrets removed")
        self._thread = threading.Thread(target=self._run, name="sidecar-recorder", daemon=True)
        self._thread.start()
        listen(self._learn)

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
        """The process ends with this exit code. Blocks for `CLOSE_S` seconds and a bit at most.

        What is not written by then is missing, and the log and the recording say so.
        """
        ignore(self._learn)
        end = Line("exit", code)
        self.add(end)
        self._queue.put(_END)
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            self._cut_off(end)
            return
        if self._has_failed:
            with suppress(OSError):
                self._write(end.encoded())
        os.close(self._descriptor)

    def _learn(self, key: str) -> None:
        self._secrets.add((key,))

    def _cut_off(self, end: Line) -> None:
        """Write the end in place of the thread, which writes nothing from then on."""
        is_held = self._writing.acquire(timeout=_LAST_WRITE_S)
        try:
            if self._is_finished:
                return
            LOGGER.warning("the end of the recording in %s is missing: there was no time to write it", self._path)
            if is_held:
                self._is_finished = True
                missing = comment("messages are missing here: the process ended before they could be written")
                with suppress(OSError):
                    self._write_all(missing.encoded() + end.encoded())
        finally:
            if is_held:
                self._writing.release()

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
            self._write(b"".join(line.encoded() for line in self._deltas.rest()), is_last=True)
        except OSError as error:
            self._has_failed = True
            LOGGER.warning("nothing more is recorded in %s: %s", self._path, error.strerror)
            self._say_that_it_stopped(error.strerror)
        finally:
            self._stopped = True
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

    def _write(self, lines: bytes, *, is_last: bool = False) -> None:
        """Write whole lines, unless the last one is written already.

        Raises:
            OSError: one cannot be written; there is nothing of it in the file, if that could be helped.
        """
        with self._writing:
            if not self._is_finished:
                self._write_all(lines)
                self._is_finished = is_last

    def _write_all(self, lines: bytes) -> None:
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError:
            self._size += lines.rfind(b"\n", 0, written) + 1
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += written

    def _say_that_it_stopped(self, why: str | None) -> None:
        """In place of the last lines if need be: where there is no room, there is some behind what goes."""
        last = comment(f"{STOPPED}{why}").encoded()
        with suppress(OSError):
            start = max(0, self._size - _MOST_GIVEN_UP)
            os.lseek(self._descriptor, start, os.SEEK_SET)
            tail = os.read(self._descriptor, self._size - start)
            if (room := tail.rfind(b"\n", 0, max(0, len(tail) - len(last)))) < 0:
                return
            self._size = start + room + 1
            os.ftruncate(self._descriptor, self._size)
            self._write(last)
