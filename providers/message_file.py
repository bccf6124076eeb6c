"""One session's messages in a JSON Lines file: read once, then its new end only; appended to, never rewritten.

Several processes may use a file at once: each holds a lock while it reads or appends. Everything here blocks.
"""

import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from protocol.messages import Message
from providers.api.history import HistoryError

from .private_folder import UnsafePlace, open_file, private_folder

MAX_LINE_BYTES: Final = 16 << 20
"""Of one message as it is stored."""
CACHE_BYTES: Final = 8 << 20
"""A file up to this size stays in memory between two uses; a bigger one is read anew."""
LOCK_SECONDS: Final = 5.0
"""So long another process may hold a file."""

_LOCK_PAUSE: Final = 0.01
_FINGERPRINT: Final = 64


class MessageFile:
    """The messages of one session. Any thread may use it.

    A crash may leave a piece of a line at the end. It was never acknowledged: it is no message, and the next append
    cuts it off. A line that is damaged in any other way is never passed over, because nobody knows what it said.

    Args:
        base: An absolute path: the folder, or what `below` starts from.
        below: See `private_folder`.
        name: The file's name.
        max_bytes: The file is neither read nor written beyond this.
    """

    def __init__(self, base: Path, below: Path | None, name: str, max_bytes: int) -> None:
        self.path = base.joinpath(below or "", name)
        self.torn: str | None = None
        """What is wrong with the file's end, as it was last seen."""
        self._base = base
        self._below = below
        self._max_bytes = max_bytes
        self._turn = threading.Lock()
        self._forget()

    def read(self) -> Sequence[Message]:
        """All messages, oldest first; none where there is no file.

        Raises:
            HistoryError: a line is no message, the file or a line is too long, it is locked, or it is not safely ours.
        """
        with self._turn:
            try:
                with self._opened(os.O_RDONLY) as (_, file), self._locked(file, exclusive=False):
                    _, last = self._catch_up(file)
            except FileNotFoundError:
                self._forget()
                self.torn = None
            else:
                found = (*self._messages, last) if last is not None else tuple(self._messages)
                self._trim()
                return found
        return ()

    def append(self, messages: Sequence[Message]) -> None:
        """Put messages at the end, those left out whose ids are there already. Returns when they are durable.

        Raises:
            HistoryError: as `read`, or there is no room; nothing was added.
        """
        opened = self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT)
        with self._turn, opened as (folder, file), self._locked(file, exclusive=True):
            rest, last = self._catch_up(file)
            lines = self._lines_of(messages, last)
            if lines:
                self._write(file, lines, rest=rest, whole=last is not None)
                if self._end == 0:
                    os.fsync(folder)  # the file may be new
            self._trim()

    def _forget(self) -> None:
        """Know nothing of the file. What is known is of whole lines only."""
        self._inode: tuple[int, int] | None = None
        self._end = 0
        self._before_end = b""
        self._lines = 0
        self._messages: list[Message] = []
        self._ids: set[str] = set()

    def _trim(self) -> None:
        if self._end > CACHE_BYTES:
            self._forget()

    @contextmanager
    def _opened(self, flags: int) -> Generator[tuple[int, int]]:
        """The descriptors of the folder and the file; what goes wrong inside is told as a `HistoryError`."""
        make = bool(flags & os.O_CREAT)
        try:
            with private_folder(self._base, self._below, make=make) as folder:
                file = open_file(folder, self.path.name, flags, self.path)
                try:
                    yield folder, file
                finally:
                    os.close(file)
        except UnsafePlace as error:
            raise HistoryError(str(error)) from None
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not make:
                raise
            raise HistoryError(f"cannot use {self.path}: {error.strerror}") from error

    @contextmanager
    def _locked(self, file: int, *, exclusive: bool) -> Generator[None]:
        """Take turns with other processes, and with other objects of this one; closing the file ends the turn."""
        import fcntl  # not there on Windows, where this module is imported all the same

        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        limit = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= limit:
                    raise HistoryError(f"{self.path} is locked by another process") from None
                time.sleep(_LOCK_PAUSE)
            else:
                break
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have a copy of the descriptor

    def _catch_up(self, file: int) -> tuple[int, Message | None]:
        """Read what is new.

        Returns:
            How many bytes follow the last whole line, and the message that they are, if they are one.
        """
        status = os.fstat(file)
        if status.st_size > self._max_bytes:
            raise HistoryError(f"{self.path} is longer than {self._max_bytes} bytes")
        known = os.pread(file, len(self._before_end), self._end - len(self._before_end))
        if self._inode != (status.st_dev, status.st_ino) or known != self._before_end:
            self._forget()
            self._inode = (status.st_dev, status.st_ino)
        data = _read(file, self._end, status.st_size - self._end)
        whole = data.rfind(b"\n") + 1
        try:
            for line in data[:whole].split(b"\n")[:-1]:
                self._take(line)
        except HistoryError:
            self._forget()
            raise
        self._before_end = (self._before_end + data[:whole])[-_FINGERPRINT:]
        rest = data[whole:]
        last = _message(rest) if rest.strip() else None
        self.torn = None
        if rest.strip() and last is None:
            self.torn = f"{self.path}, line {self._lines + 1}: a write was cut short; its {len(rest)} bytes are ignored"
        return len(rest), last

    def _take(self, line: bytes) -> None:
        self._lines += 1
        self._end += len(line) + 1
        if len(line) > MAX_LINE_BYTES:
            raise HistoryError(f"{self.path}, line {self._lines}: longer than {MAX_LINE_BYTES} bytes")
        if not line.strip():
            return
        message = _message(line)
        if message is None:
            raise HistoryError(f"{self.path}, line {self._lines}: this is no message")
        self._messages.append(message)
        if message.message_id is not None:
            self._ids.add(message.message_id)

    def _lines_of(self, messages: Sequence[Message], last: Message | None) -> bytes:
        """The lines of those messages that are new."""
        known: set[str | None] = {last.message_id} if last is not None else set()
        lines: list[bytes] = []
        for message in messages:
            if message.message_id is not None:
                if message.message_id in self._ids or message.message_id in known:
                    continue
                known.add(message.message_id)
            line = _line(message)
            if len(line) > MAX_LINE_BYTES:
                raise HistoryError(f"{self.path}: a message would be longer than {MAX_LINE_BYTES} bytes")
            lines.append(line)
        return b"".join(lines)

    def _write(self, file: int, lines: bytes, *, rest: int, whole: bool) -> None:
        """Add lines in one piece, or nothing.

        Args:
            file: Open for appending, and locked.
            lines: What to add.
            rest: Bytes after the last whole line.
            whole: Whether these are a message, which only lacks its line's end.
        """
        start = self._end
        if whole:
            start, lines = start + rest, b"\n" + lines
        if start + len(lines) > self._max_bytes:
            raise HistoryError(f"{self.path} is full: it may have {self._max_bytes} bytes")
        if rest and not whole:
            os.ftruncate(file, start)
        try:
            written = 0
            while written < len(lines):
                written += os.write(file, lines[written:])
            os.fsync(file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, start)
            raise
        self.torn = None


def _read(file: int, start: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0:
        piece = os.pread(file, size, start)
        if not piece:
            break
        pieces.append(piece)
        start, size = start + len(piece), size - len(piece)
    return b"".join(pieces)


def _message(line: bytes) -> Message | None:
    try:
        return Message.model_validate_json(line)
    except ValidationError:
        return None


def _line(message: Message) -> bytes:
    try:
        return message.model_dump_json(exclude_none=True).encode() + b"\n"
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"a message cannot be written as JSON: {type(error).__name__}") from None
