"""Who is alive: one lock file for each process, held by an OS lock that dies with it. It knows no sessions.

A file named `ID.lock` is locked from its first instant to its owner's end, because it gets that name only once it is
locked. So a file that is missing or not locked means that its owner is dead, and may be removed by anybody. No clock
and no process id takes part: a stopped process keeps its lock, and a wrong clock takes nothing from anybody.
"""

import contextlib
import errno
import os
import sys
import weakref
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .base import Foreign, Unavailable

_SUFFIX: Final = ".lock"
_UNNAMED: Final = ".new"


class OwnerLock:
    """The proof that this process lives. Held from construction until `release`."""

    def __init__(self, folder: Path, owner: str) -> None:
        """Take the lock, and create the folder (0700) if need be.

        Raises:
            Foreign: the folder belongs to somebody else.
            Unavailable: the folder cannot be written to, or this owner exists.
        """
        self._path = _lock_file(folder, owner)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if sys.platform != "win32" and folder.stat().st_uid != os.geteuid():
                raise Foreign(f"{folder} belongs to somebody else")
            self._fd: int | None = _hold(self._path)
        except OSError as error:
            raise Unavailable(f"cannot hold {self._path}: {error.strerror}") from error
        _held.add(self)

    def release(self) -> None:
        """Give the lock up and remove its file. Harmless when repeated."""
        if (fd := self._fd) is None:
            return
        self._fd = None
        _held.discard(self)
        if sys.platform != "win32":
            # Before the lock: a file that was seen unlocked may be removed by others, and a new one is not theirs.
            with contextlib.suppress(OSError):  # whoever finds it unlocked removes it
                self._path.unlink(missing_ok=True)
            fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would not free it while a forked child has a copy
        os.close(fd)
        if sys.platform == "win32":
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Close the copy that a forked child has; the lock stays with the parent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def join(folder: Path, owner: str) -> OwnerLock:
    """Hold a lock for this process, and remove what dead ones left.

    Raises:
        Foreign, Unavailable: as `OwnerLock` does.
    """
    lock = OwnerLock(folder, owner)
    sweep(folder)
    return lock


def is_alive(folder: Path, owner: str) -> bool:
    """Whether an owner's process still runs. In doubt it does: a session is never taken from a living owner."""
    return _is_held(_lock_file(folder, owner))


def remove(folder: Path, owner: str) -> None:
    """Remove the lock file of an owner that is dead."""
    with contextlib.suppress(OSError):
        _lock_file(folder, owner).unlink(missing_ok=True)


def sweep(folder: Path) -> int:
    """Remove what dead owners left; returns how many there were."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix in (_SUFFIX, _UNNAMED) and not _is_held(path):
                with contextlib.suppress(OSError):
                    path.unlink()
                    removed += 1
    return removed


def _lock_file(folder: Path, owner: str) -> Path:
    return folder / (quote(owner, safe="") + _SUFFIX)


if sys.platform == "win32":
    import msvcrt

    # An open file cannot be removed here, so that the handle keeps the file; the lock is for `_is_held`'s eyes.

    def _hold(path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        return fd

    def _is_held(path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

else:
    import fcntl

    def _hold(path: Path) -> int:
        if path.exists():
            raise FileExistsError(errno.EEXIST, "this owner exists already", str(path))
        unnamed = path.with_suffix(_UNNAMED)
        while True:
            fd = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(unnamed, path)
            except (BlockingIOError, FileNotFoundError):  # a sweep came between; it has removed the file
                os.close(fd)
            except BaseException:
                os.close(fd)
                raise
            else:
                return fd

    def _is_held(path: Path) -> bool:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            # Shared, so that two who look at once do not take each other for the owner.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False


_held: Final[weakref.WeakSet[OwnerLock]] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_all)
