"""Writes the report of `doctor --bundle` as one file for this user alone, never over another. Collects nothing."""

import os
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from .command import CommandError


def default_name(time: datetime) -> Path:
    """In the working directory; a name that says when."""
    return Path(f"agent-sidecar-report-{time:%Y%m%d-%H%M%S}.zip")


def write_bundle(path: Path, parts: Mapping[str, str]) -> None:
    """Write the archive, 0600. Where that fails, nothing is left.

    Raises:
        CommandError: the file exists, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise CommandError(f"{path} exists already, and is not overwritten; name another file") from None
    except FileNotFoundError:
        raise CommandError(f"{path.parent} is no folder; create it first") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
