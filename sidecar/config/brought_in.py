"""What a configuration file brings in besides itself: `instructions_file`s and plug-in folders. It digests, runs none.

Bytecode counts for nothing: it is neither digested nor ever loaded from a plug-in folder (`providers/plugins.py`).
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sidecar.errors import ConfigInvalid

from .files import ConfigFile, read_instructions, text_digest
from .keypath import as_list, as_table
from .layers import absolute

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 64 * 1024 * 1024

UNREADABLE: Final = ""
"""The digest of what cannot be read."""

_SKIPPED: Final = frozenset({"__pycache__", ".git"})
_CHUNK: Final = 1024 * 1024


class Stamp(NamedTuple):
    """What shows, without reading a file, that it has changed."""

    path: str
    modified_ns: int
    size: int
    inode: int


def stamp(path: str | Path) -> Stamp:
    """The stamp of a file; of one that is not there too."""
    try:
        status = os.stat(path)
    except OSError:
        return Stamp(str(path), 0, -1, 0)
    return Stamp(str(path), status.st_mtime_ns, status.st_size, status.st_ino)


def plugin_folders(file: ConfigFile) -> list[Path]:
    """The folders that a file's `plugins` names, whatever else is wrong with it."""
    names = as_list(file.data.get("plugins")) or []
    return [Path(absolute(name, file.path.parent)) for name in names if isinstance(name, str)]


def plugin_files(folders: list[Path]) -> Iterator[str]:
    """Every file in the folders, links followed, each real folder once; at most `MAX_FILES` and one more."""
    found = 0
    seen: set[str] = set()
    pending = [str(folder) for folder in reversed(folders)]
    while pending:
        folder = os.path.realpath(pending.pop())
        if folder in seen:
            continue
        seen.add(folder)
        below, files = _listed(folder)
        pending += below
        for path in files:
            yield path
            found += 1
            if found > MAX_FILES:
                return


def digests(file: ConfigFile) -> dict[str, str]:
    """The digest of each file that comes with a configuration file, by its path.

    Raises:
        ConfigInvalid: its plug-in folders hold too much to be looked through.
    """
    found = dict(_instructions(file))
    left = MAX_BYTES
    for count, path in enumerate(plugin_files(plugin_folders(file)), start=1):
        found[path], size = _digest(path, left)
        left -= size
        if left < 0 or count > MAX_FILES:
            raise ConfigInvalid(
                f"plugins: the folders hold more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; name smaller ones",
                file=str(file.path),
                line=file.line(("plugins",)),
                key="plugins",
            )
    return found


def _instructions(file: ConfigFile) -> Iterator[tuple[str, str]]:
    for name, agent in (as_table(file.data.get("agents")) or {}).items():
        wanted = (as_table(agent) or {}).get("instructions_file")
        if not isinstance(wanted, str):
            continue
        try:
            path, text = read_instructions(wanted, file, ("agents", name, "instructions_file"))
        except (ConfigInvalid, ValueError):
            yield absolute(wanted, file.path.parent), UNREADABLE
        else:
            yield str(path), text_digest(text)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The folders and the files right below, in order; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except (OSError, ValueError):
        return [], []
    listed = [entry for entry in listed if entry.name not in _SKIPPED]
    folders = [entry.path for entry in listed if entry.is_dir()]
    return folders, [entry.path for entry in listed if not entry.is_dir()]


def _digest(path: str, limit: int) -> tuple[str, int]:
    """A file's digest and size; of one that is larger than `limit`, of its beginning."""
    digest, size = hashlib.sha256(), 0
    try:
        if not os.path.isfile(path):
            return UNREADABLE, 0
        with open(path, "rb") as stream:
            while size <= limit and (chunk := stream.read(_CHUNK)):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return UNREADABLE, 0
    return digest.hexdigest(), size
