"""A store of text files in a folder of the disk, that no name, link or race leads out of. POSIX only.

Nothing is opened by a path as a whole: each step is opened from the descriptor of the one before, and links are never
followed. A file is written beside its place and put there in one step, so that a crash leaves the old one or the new.
"""

import asyncio
import os
import secrets
import stat
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from providers.api.memory import FileEntry

from .file_stores import (
    LOCK_SECONDS,
    MAX_ENTRIES,
    TEMPORARY,
    StoreError,
    StoreLimits,
    check_size,
    encoded,
    steps_of,
)
from .private_folder import UnsafePlace, open_file, private_folder, refuse_foreign, subfolder

T = TypeVar("T")

_LOCK_PAUSE: Final = 0.01
_STALE_SECONDS: Final = 3600
"""A temporary file of this age was left behind by a process that died."""


class FilesystemStore:
    """Files below one folder, readable by their user alone.

    Args:
        base: An absolute path: the folder, or what `below` starts from.
        below: See `private_folder`.
        limits: Of files and folders.
    """

    def __init__(self, base: Path, below: Path | None = None, limits: StoreLimits | None = None) -> None:
        self.path = base.joinpath(below or "")
        self._base = base
        self._below = below
        self._limits = limits or StoreLimits()

    async def read(self, path: str) -> str | None:
        """The text; `None` if there is no such file.

        Raises:
            StoreError: it is no regular file of ours alone, too long, or no UTF-8.
        """
        return await _to_its_end(partial(self._read, *_place(path)))

    async def write(self, path: str, text: str, *, overwrite: bool = True) -> bool:
        """Write all of it at once; whether it was written. Returns when it is durable.

        Raises:
            StoreError: what is there is no regular file of ours alone, a limit is passed, or the disk refuses.
        """
        folder, name = _place(path)
        return await _to_its_end(partial(self._write, folder, name, encoded(text), overwrite=overwrite))

    async def delete(self, path: str) -> bool:
        """Whether it was there.

        Raises:
            StoreError: what is there is no regular file of ours alone.
        """
        return await _to_its_end(partial(self._delete, *_place(path)))

    async def entries(self, folder: str = "") -> Sequence[FileEntry]:
        """What a folder holds of files and folders that can be used, by name; nothing if it is not there.

        Raises:
            StoreError: it cannot be used, or holds too much.
        """
        return await _to_its_end(partial(self._entries, steps_of(folder)))

    @asynccontextmanager
    async def turn(self, folder: str) -> AsyncGenerator[None]:
        """Keep others from the folder's turn, in this process and in any other. The folder is made.

        What a process that died has left unfinished there is removed, and so is what is written without a turn.

        Raises:
            StoreError: it is held for too long, or the folder cannot be used.
        """
        held: list[int] = []
        try:
            await _to_its_end(partial(self._open_turn, steps_of(folder), held))
            limit = time.monotonic() + LOCK_SECONDS
            while not await _to_its_end(partial(_lock, held[0])):
                if time.monotonic() >= limit:
                    raise StoreError("its folder is in use; try again")
                await asyncio.sleep(_LOCK_PAUSE)  # here, not in a thread: whoever has the turn needs one
            await _to_its_end(partial(_clean, held[0]))
            yield
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _open_turn(self, steps: Sequence[str], held: list[int]) -> None:
        with self._folder(steps, make=True) as folder:
            held.append(os.dup(folder))

    @contextmanager
    def _folder(self, steps: Sequence[str], *, make: bool) -> Generator[int]:
        """A folder's descriptor; what goes wrong inside, other than a missing file, is told as a `StoreError`."""
        with _told(), ExitStack() as stack:
            try:
                root = stack.enter_context(private_folder(self._base, self._below, make=make))
            except (UnsafePlace, OSError) as error:
                if isinstance(error, FileNotFoundError) and not make:
                    raise
                raise StoreError("the folder of the store cannot be used") from error
            yield stack.enter_context(subfolder(root, steps, make=make))

    def _read(self, steps: Sequence[str], name: str) -> str | None:
        try:
            with self._folder(steps, make=False) as folder:
                file = open_file(folder, name, os.O_RDONLY, Path(name))
                with os.fdopen(file, "rb") as stream:
                    _refuse_links(os.fstat(file), name)
                    data = stream.read(self._limits.file_bytes + 1)
        except FileNotFoundError:
            return None
        if len(data) > self._limits.file_bytes:
            raise StoreError(f"it has more than {self._limits.file_bytes} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise StoreError("it is no UTF-8 text") from None

    def _write(self, steps: Sequence[str], name: str, data: bytes, *, overwrite: bool) -> bool:
        try:
            with self._folder(steps, make=True) as folder:
                found = _survey(folder)
                known = _status(folder, name)
                if known is not None and not overwrite:
                    return False
                check_size(len(data), found.total - (known.st_size if known is not None else 0), self._limits)
                if known is None and found.entries >= MAX_ENTRIES:
                    raise StoreError(f"its folder holds {MAX_ENTRIES} files")
                return _put(folder, name, data, overwrite=overwrite)
        except FileNotFoundError:
            raise StoreError("its folder was moved away meanwhile") from None

    def _delete(self, steps: Sequence[str], name: str) -> bool:
        try:
            with self._folder(steps, make=False) as folder:
                if _status(folder, name) is None:
                    return False
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
        except FileNotFoundError:
            return False
        return True

    def _entries(self, steps: Sequence[str]) -> Sequence[FileEntry]:
        try:
            with self._folder(steps, make=False) as folder:
                return _listed(folder)
        except FileNotFoundError:
            return ()


def _place(path: str) -> tuple[tuple[str, ...], str]:
    *folder, name = steps_of(path) or ("",)
    if not name:
        raise StoreError("it has no name")
    return tuple(folder), name


def _lock(descriptor: int) -> bool:
    """Whether the turn is ours now; closing the descriptor ends it."""
    import fcntl  # not there on Windows, where this module is imported all the same

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except (FileNotFoundError, StoreError):
        raise
    except UnsafePlace as error:
        raise StoreError(str(error)) from None
    except OSError as error:
        raise StoreError(error.strerror or "the disk refuses") from error


def _status(folder: int, name: str) -> os.stat_result | None:
    """What is at a name, if it is a file that may be used; `None` if nothing is.

    Raises:
        UnsafePlace: it is something else.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise UnsafePlace(f"{name} is a link; it is not followed")
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePlace(f"{name} is no regular file")
    _refuse_links(status, name)
    refuse_foreign(status, Path(name))
    return status


def _refuse_links(status: os.stat_result, name: str) -> None:
    """Refuse a file that is in another place too, which may be anywhere."""
    if status.st_nlink > 1:
        raise UnsafePlace(f"{name} has more than one name on the disk")


def _clean(folder: int) -> None:
    """Remove files that nobody finishes any more. The folder's turn is ours."""
    with _told():
        for entry in _scan(folder):
            if entry.name.startswith(TEMPORARY):
                with suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=folder)


@dataclass(slots=True)
class _Found:
    entries: int = 0
    total: int = 0
    """Of the files, in bytes."""


def _survey(folder: int) -> _Found:
    """How much there is; what a process that died has left behind is removed."""
    found = _Found()
    for entry in _scan(folder):
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if entry.name.startswith(TEMPORARY) and _is_stale(status):
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=folder)
            continue
        found.entries += 1
        if stat.S_ISREG(status.st_mode):
            found.total += status.st_size
    return found


def _is_stale(status: os.stat_result) -> bool:
    """A second name of a file that is in its place already, or one that nobody has finished for long."""
    return status.st_nlink > 1 or abs(time.time() - status.st_mtime) > _STALE_SECONDS


def _scan(folder: int) -> list[os.DirEntry[str]]:
    found: list[os.DirEntry[str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append(entry)
            if len(found) > MAX_ENTRIES:
                raise StoreError(f"its folder holds more than {MAX_ENTRIES} files")
    return found


def _listed(folder: int) -> Sequence[FileEntry]:
    found: list[FileEntry] = []
    for entry in _scan(folder):
        name = entry.name
        if name.startswith(TEMPORARY) or not name.isprintable() or "\\" in name:
            continue
        with suppress(FileNotFoundError, UnsafePlace):
            if entry.is_dir(follow_symlinks=False):
                found.append(FileEntry(name, is_folder=True))
            elif _status(folder, name) is not None:
                found.append(FileEntry(name))
    return sorted(found, key=lambda entry: entry.name)


def _put(folder: int, name: str, data: bytes, *, overwrite: bool) -> bool:
    """Write a file beside its place, and put it there; whether it was put there."""
    temporary = TEMPORARY + secrets.token_hex(8)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(file)
        if overwrite:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
    os.fsync(folder)
    return True


async def _to_its_end(work: Callable[[], T]) -> T:
    """Run in a thread. A cancellation waits for its end: whoever holds a turn must not lose it in the middle."""
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody else hears of it
        raise
