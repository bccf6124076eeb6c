"""Opens the file of a recording: for this user and this process alone, and behind what is recorded there already.

A file that is refused stays as it is, its mode too.
"""

import os
import stat
import sys
from pathlib import Path
from typing import Final, NamedTuple

STOPPED: Final = "stopped: "
"""Begins the remark of a process that went on, and could record nothing more."""

_BEGINNING: Final = b'{"#":"agent-sidecar '
_ENDS: Final = (b'{"exit":', b'{"kill":', f'{{"#":"{STOPPED}'.encode())
_TAIL_BYTES: Final = 64 * 1024
_LAST_LINE_BYTES: Final = 256


class NotRecorded(Exception):
    """The file cannot be recorded to; the text says why."""


class Opened(NamedTuple):
    """A file to write to, at its end."""

    descriptor: int
    size: int
    """Bytes that are in it."""
    was_killed: bool
    """Whether the process that recorded there before does not say how it ended: as it has the file no more, it is gone.
    """


def open_recording(path: Path) -> Opened:
    """Open the file, or go on with it where an earlier process ended.

    Raises:
        NotRecorded: it is no recording, somebody else's, in use, or cannot be opened.
    """
    descriptor = _open(path)
    try:
        _hold(descriptor)
        size, has_ended = _end_of_earlier(descriptor)
        if sys.platform != "win32":
            os.fchmod(descriptor, 0o600)
    except (NotRecorded, OSError) as error:
        os.close(descriptor)
        if isinstance(error, NotRecorded):
            raise
        raise NotRecorded(error.strerror or "it cannot be recorded to") from error
    return Opened(descriptor, size, was_killed=not has_ended)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError as error:
        raise NotRecorded(f"there is no folder {path.parent}; create it first") from error
    except OSError as error:
        why = "it is a link" if os.path.islink(path) else error.strerror or "it cannot be opened"
        raise NotRecorded(why) from error


def _hold(descriptor: int) -> None:
    """Keep others from recording there, until this process ends.

    Raises:
        NotRecorded: it is no file of this user's, or another process has it.
        OSError: it cannot be locked.
    """
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise NotRecorded("it is no regular file")
    if sys.platform != "win32":
        if found.st_uid != os.geteuid():
            raise NotRecorded("it belongs to somebody else")
        _lock(descriptor)


if sys.platform != "win32":
    import fcntl

    def _lock(descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotRecorded("another sidecar records there; give each a file of its own") from error


def _end_of_earlier(descriptor: int) -> tuple[int, bool]:
    """Where to go on in the file, and whether the process before us says how it ended.

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
    return whole, last.startswith(_ENDS)
