"""Small files of the user's own that the sidecar itself writes: read with suspicion, replaced in one step."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 16 * 1024 * 1024
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Unusable(Exception):
    """A file cannot be used; the text says why."""


def read_own(path: Path) -> bytes | None:
    """What a file holds; `None` if it does not exist.

    Raises:
        Unusable: it is no regular file, is not the user's own, others may write to it, or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            _refuse_suspicious(os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(error.strerror or type(error).__name__) from None


@contextmanager
def changing(path: Path) -> Generator[None]:
    """Processes that change the file take turns. Its folder is made, for the user alone.

    Raises:
        OSError: there is no such place.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    lock = path.with_suffix(".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with suppress(ImportError):  # Windows: the last writer wins, and the file stays whole
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_own(path: Path, text: str) -> None:
    """Replace the file in one step; nobody else may read it.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_suffix(f".{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _refuse_suspicious(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unusable("it is no regular file")
    if os.name == "posix" and status.st_uid not in (0, os.getuid()):
        raise Unusable("it belongs to another user")
    if os.name == "posix" and status.st_mode & _OTHERS_MAY_WRITE:
        raise Unusable("other users may write to it")
