"""Which folders belong to a project, seen from one of them. Looks at names only; opens no file."""

import os
from pathlib import Path


def project_folders(cwd: Path) -> list[Path]:
    """The folders from the repository's root down to `cwd`; `cwd` alone outside a repository.

    The root is the folder that holds `.git`; it is never looked for above the home folder.

    Args:
        cwd: An absolute path without links.
    """
    home = _home()
    walked: list[Path] = []
    for folder in (cwd, *cwd.parents):
        if home is not None and folder in home.parents:
            break
        walked.append(folder)
        if os.path.lexists(folder / ".git"):  # also where the folder may not be entered
            return walked[::-1]
        if folder == home:
            break
    return [cwd]


def _home() -> Path | None:
    """The home folder without links, as `cwd` is; `None` where it cannot be known."""
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None
