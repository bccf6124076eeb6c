"""Opens files of our own below a folder that nobody else may write to, and follows no link there. POSIX only.

Everything is opened from the descriptor of the folder above it: what is looked at is what is used.
"""

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final


class UnsafePlace(Exception):
    """A file or folder is not used, because of what it is or whose it is; the text names it and says why."""


_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def private_folder(base: Path, below: Path | None = None, *, make: bool = True) -> Generator[int]:
    """The descriptor of a folder.

    Args:
        base: An absolute path. Links on the way to it are followed, but it is none itself unless `below` is given.
        below: A path from `base` on, on which no step may be a link.
        make: Make it, for us alone, and what leads to it, where it is missing.

    Raises:
        UnsafePlace: it is a link or no folder, or others may write to it.
        FileNotFoundError: it is not there, and is not to be made.
        OSError: it cannot be made or opened.
    """
    if below is None:
        if make:
            base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        base, steps = base.parent, (base.name,)
    else:
        steps = below.parts
    folder = os.open(base, _FOLDER)
    try:
        place = base
        for step in steps:
            place = place / step
            inner = _enter(folder, step, place, make=make)
            os.close(folder)
            folder = inner
        refuse_foreign(os.fstat(folder), place)
        yield folder
    finally:
        os.close(folder)


@contextmanager
def subfolder(folder: int, steps: Sequence[str], *, make: bool = True) -> Generator[int]:
    """The descriptor of a folder below another one. No step may be a link, or anybody's but our own.

    Args:
        folder: The descriptor of the folder that the steps start from; it stays open.
        steps: The names of the folders in between and of the folder itself; messages name none of them.
        make: Make what is missing, for us alone.

    Raises:
        UnsafePlace: a step is a link or no folder, or others may write to it.
        FileNotFoundError: a step is not there, and is not to be made.
        OSError: a step cannot be made or opened.
    """
    place = Path("its folder")
    here = os.dup(folder)
    try:
        for step in steps:
            inner = _enter(here, step, place, make=make)
            os.close(here)
            here = inner
            refuse_foreign(os.fstat(here), place)
        yield here
    finally:
        os.close(here)


def open_file(folder: int, name: str, flags: int, place: Path) -> int:
    """The descriptor of a regular file in a folder; what is made is readable by us alone.

    Args:
        folder: The folder's descriptor.
        name: The file's name in it.
        flags: Of `os.open`.
        place: What it is called in messages.

    Raises:
        UnsafePlace: it is a link, no regular file, or others may write to it.
        FileNotFoundError: it is not there, and the flags do not make it.
        OSError: it cannot be opened.
    """
    try:
        file = os.open(name, flags | _FILE, 0o600, dir_fd=folder)
    except OSError as error:
        if _is_link(folder, name):
            raise UnsafePlace(f"{place} is a link; it is not followed") from error
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePlace(f"{place} is no regular file")
        refuse_foreign(status, place)
    except BaseException:
        os.close(file)
        raise
    return file


def refuse_foreign(status: os.stat_result, place: Path) -> None:
    """Refuse what somebody else could have written.

    Raises:
        UnsafePlace: it belongs to another user, or others may write to it.
    """
    if status.st_uid != os.geteuid():
        raise UnsafePlace(f"{place} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafePlace(f"other users may write to {place}; chmod go-w it")


def _enter(folder: int, step: str, place: Path, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(step, 0o700, dir_fd=folder)
            os.fsync(folder)
    try:
        return os.open(step, _FOLDER | _NO_LINK, dir_fd=folder)
    except OSError as error:
        if _is_link(folder, step):
            raise UnsafePlace(f"{place} is a link; it is not followed") from error
        if isinstance(error, NotADirectoryError):
            raise UnsafePlace(f"{place} is no folder") from error
        raise


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
