"""Stores of text files: what all of them promise, the one in memory, and how a configuration names one.

The one on a disk is in `filesystem_store.py`. What is done with the files is said elsewhere.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol, Self
from weakref import WeakValueDictionary

import platformdirs
from pydantic import Field, model_validator

from protocol.base import StrictModel
from providers.api.memory import FileEntry, FileStore

MAX_FILE_BYTES: Final = 1 << 20
MAX_FOLDER_BYTES: Final = 16 << 20
MAX_ENTRIES: Final = 10_000
"""Files and folders in one folder; one that holds more is not listed."""
MAX_STEP_BYTES: Final = 255
"""Of one step of a path, in UTF-8: what most disks take."""
LOCK_SECONDS: Final = 5.0
"""So long somebody else may hold a folder's turn."""
TEMPORARY: Final = ".tmp-"
"""How the names of files begin that are not finished. No other file may be called so."""


class StoreError(Exception):
    """A file cannot be used as it was asked for. The text is for models: it names nothing outside of the store."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much a store takes."""

    file_bytes: int = MAX_FILE_BYTES
    """Of one file, in UTF-8. A longer one is neither read nor written."""
    folder_bytes: int = MAX_FOLDER_BYTES
    """Of the files of one folder together. What would pass it is not written."""


class SharedStore(FileStore, Protocol):
    """A store that sessions, and maybe processes, use at the same time. Every method raises `StoreError`."""

    def turn(self, folder: str) -> AbstractAsyncContextManager[None]:
        """Keep others from a folder's turn for several steps. Only those who ask for a turn wait; it is not reentrant.

        Raises:
            StoreError: somebody else has held it for too long.
        """
        ...


class FilesystemPlace(StrictModel):
    """A store in a folder of the disk."""

    type: Literal["filesystem"]
    path: Annotated[str, Field(min_length=1)] | None = None
    """Relative to the session's working directory, and then inside it; default: in the platform's data folder."""

    @model_validator(mode="after")
    def _stays_inside(self) -> Self:
        path = Path(self.path or "x")
        if "\0" in str(path) or not path.name or ".." in path.parts:
            raise ValueError("path must name a folder, and no step of it may be '..'")
        return self


class MemoryPlace(StrictModel):
    """The store in this process's memory, which all of its sessions share and which ends with it."""

    type: Literal["memory"]


StorePlace = Annotated[FilesystemPlace | MemoryPlace, Field(discriminator="type")]


def open_store(place: FilesystemPlace | MemoryPlace, cwd: str | None, limits: StoreLimits) -> SharedStore:
    """The store that a configuration names. Nothing is made or touched before it is used.

    Raises:
        StoreError: this system has no such store, or a relative path has nothing to start from.
    """
    if isinstance(place, MemoryPlace):
        return MemoryFiles(limits, _IN_PROCESS)
    from .filesystem_store import FilesystemStore  # where there are no POSIX calls, only this kind is missing

    if os.open not in os.supports_dir_fd:
        raise StoreError("the store 'filesystem' needs a POSIX system")
    if place.path is None:
        return FilesystemStore(default_folder(), None, limits)
    path = Path(place.path).expanduser()
    if path.is_absolute():
        return FilesystemStore(path, None, limits)
    if cwd is None:
        raise StoreError("a relative path needs a session with a working directory")
    return FilesystemStore(Path(cwd), path, limits)


def default_folder() -> Path:
    """In the platform's folder for a user's data; never in a workspace, whose files may be a stranger's."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / "file-memory"


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a relative path; none of the empty one.

    Raises:
        StoreError: a step could mean something else than a name.
    """
    steps = tuple(path.split("/")) if path else ()
    for step in steps:
        if step in ("", ".", "..") or "\\" in step or "\0" in step or step.startswith(TEMPORARY):
            raise StoreError("its path has a step that is no name")
        if len(encoded(step)) > MAX_STEP_BYTES:
            raise StoreError(f"its name is longer than {MAX_STEP_BYTES} bytes")
    return steps


def encoded(text: str) -> bytes:
    """Text as it is stored.

    Raises:
        StoreError: half of a surrogate pair has no UTF-8.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise StoreError("it holds text that has no UTF-8") from None


def check_size(size: int, rest_of_folder: int, limits: StoreLimits) -> None:
    """Refuse what a store does not take.

    Args:
        size: Of the file, as it is to be, in bytes.
        rest_of_folder: Of the other files beside it.
        limits: Of the store.

    Raises:
        StoreError: the file or its folder would be too big.
    """
    if size > limits.file_bytes:
        raise StoreError(f"it would have {size} bytes, and may have {limits.file_bytes}")
    if rest_of_folder + size > limits.folder_bytes:
        raise StoreError(f"all files together would have more than {limits.folder_bytes} bytes")


class FilesOfFolders:
    """What stores in memory have in common: folder → name in one letter case → the name, and the text."""

    def __init__(self) -> None:
        self.folders: dict[str, dict[str, tuple[str, str]]] = {}
        self.turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


_IN_PROCESS: Final = FilesOfFolders()


class MemoryFiles:
    """Files in memory. Letter case does not count in paths; the one of the first writer is shown."""

    def __init__(self, limits: StoreLimits | None = None, files: FilesOfFolders | None = None) -> None:
        self._limits = limits or StoreLimits()
        self._files = files if files is not None else FilesOfFolders()

    async def read(self, path: str) -> str | None:
        """The text; `None` if there is no such file."""
        folder, name = self._place(path)
        found = self._files.folders.get(folder, {}).get(name.casefold())
        return found[1] if found is not None else None

    async def write(self, path: str, text: str, *, overwrite: bool = True) -> bool:
        """Write all of it, or nothing; whether it was written."""
        folder, name = self._place(path)
        files = self._files.folders.get(folder, {})
        known = files.get(name.casefold())
        if known is not None and not overwrite:
            return False
        rest = sum(len(encoded(other)) for key, (_, other) in files.items() if key != name.casefold())
        check_size(len(encoded(text)), rest, self._limits)
        if known is None and len(files) >= MAX_ENTRIES:
            raise StoreError(f"its folder holds {MAX_ENTRIES} files")
        shown = known[0] if known is not None else name
        self._files.folders.setdefault(folder, files)[name.casefold()] = (shown, text)
        return True

    async def delete(self, path: str) -> bool:
        """Whether it was there."""
        folder, name = self._place(path)
        files = self._files.folders.get(folder, {})
        gone = files.pop(name.casefold(), None)
        if not files:
            self._files.folders.pop(folder, None)
        return gone is not None

    async def entries(self, folder: str = "") -> Sequence[FileEntry]:
        """What a folder holds, by name."""
        key = "/".join(steps_of(folder)).casefold()
        inside = key + "/" if key else ""
        below = {path[len(inside) :].partition("/")[0] for path in self._files.folders if path.startswith(inside)}
        found = [FileEntry(name, is_folder=True) for name in below if name]
        files: Mapping[str, tuple[str, str]] = self._files.folders.get(key, {})
        found.extend(FileEntry(name) for name, _ in files.values())
        return sorted(found, key=lambda entry: entry.name)

    @asynccontextmanager
    async def turn(self, folder: str) -> AsyncGenerator[None]:
        """Keep others of this process from the folder's turn."""
        lock = self._files.turns.setdefault("/".join(steps_of(folder)).casefold(), asyncio.Lock())
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                await lock.acquire()
        except TimeoutError:
            raise StoreError("its folder is in use; try again") from None
        try:
            yield
        finally:
            lock.release()

    def _place(self, path: str) -> tuple[str, str]:
        *folder, name = steps_of(path) or ("",)
        if not name:
            raise StoreError("it has no name")
        return "/".join(folder).casefold(), name
