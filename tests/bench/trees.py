"""What a folder holds, for tests that must show that nothing of it was touched. Tests only."""

import os
import stat
from pathlib import Path


def picture(folder: Path, *, without: Path | None = None) -> dict[str, tuple[object, ...]]:
    """Path → kind and mode, owner, size, time of change, content; links are not followed.

    Args:
        folder: What is looked at, itself included.
        without: A folder that may change.
    """
    found: dict[str, tuple[object, ...]] = {}
    for place, folders, files in os.walk(folder):
        if without is not None:
            folders[:] = [name for name in folders if Path(place, name) != without]
        for path in (Path(place), *(Path(place, name) for name in (*folders, *files))):
            status = path.lstat()
            found[str(path)] = (
                status.st_mode,
                status.st_uid,
                status.st_size,
                status.st_mtime_ns,
                _content(path, status),
            )
    return found


def _content(path: Path, status: os.stat_result) -> bytes | str | None:
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    return path.read_bytes() if stat.S_ISREG(status.st_mode) else None
