"""A disk that fills up quickly: a tmpfs of two mebibytes. Tests only."""

import contextlib
import subprocess
from pathlib import Path


class SmallDisk:
    """A disk of two mebibytes, to be filled to the brim and to be freed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f"sqlite:{folder / 'sessions.db'}"
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leave no room for another page."""
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink()

    def remount(self, how: str) -> None:
        """Read-only (`ro`) or not (`rw`)."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], check=True)
