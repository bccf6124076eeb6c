"""Which projects' files the user trusts: kept in the user's folder, by real path and content. It reads no project."""

import json
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from protocol.base import StrictModel
from sidecar.errors import ConfigInvalid

from .files import user_folder

VERSION: Final = 1
MAX_BYTES: Final = 16 * 1024 * 1024
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class TrustedFile(StrictModel):
    """One file that is trusted, as it was at that time."""

    sha256: str
    brings: dict[str, str]
    """Path → SHA-256 of each file that it brings in; empty for one that could not be read."""


class _Document(StrictModel):
    version: int
    files: dict[str, TrustedFile]


@dataclass(frozen=True, slots=True)
class Trusted:
    """What `trust.json` says."""

    files: Mapping[str, TrustedFile]
    """Real path of a project's file → what was trusted."""
    problem: str | None = None
    """Why nothing is trusted, where the file cannot be used."""


def trust_file() -> Path:
    """Where trust is kept, whether it exists or not."""
    return user_folder() / "trust.json"


def read_trust() -> Trusted:
    """What is trusted. A file that cannot be used trusts nothing, and says so; it never raises."""
    path = trust_file()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            reason = _suspicious(os.fstat(descriptor))
            if reason is not None:
                return _unusable(path, reason)
            with open(descriptor, "rb", closefd=False) as stream:
                content = stream.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return Trusted({})
    except OSError as error:
        return _unusable(path, error.strerror or type(error).__name__)
    try:
        document = _Document.model_validate_json(content)
    except ValidationError:
        return _unusable(path, "it is damaged")
    if document.version != VERSION:
        return _unusable(path, f"it is of version {document.version}, not {VERSION}")
    return Trusted(document.files)


def trust(path: Path, file: TrustedFile) -> None:
    """Trust a project's file as it is now.

    Raises:
        ConfigInvalid: it cannot be written down.
    """
    with _changing() as files:
        files[str(path)] = file


def distrust(folder: Path, path: Path | None) -> int:
    """Forget the file at `path`, and every one at or below a folder; gives how many there were.

    Raises:
        ConfigInvalid: it cannot be written down.
    """
    with _changing() as files:
        gone = [known for known in files if Path(known) == path or Path(known).is_relative_to(folder)]
        for known in gone:
            del files[known]
    return len(gone)


@contextmanager
def _changing() -> Generator[dict[str, TrustedFile]]:
    """The trusted files, to be changed; written when the block ends. Processes take turns."""
    path = trust_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
        with _turn(path.with_suffix(".lock")):
            files = dict(read_trust().files)
            yield files
            _write(path, _Document(version=VERSION, files=files))
    except OSError as error:
        raise ConfigInvalid(f"trust cannot be kept: {error.strerror or type(error).__name__}", file=str(path)) from None


@contextmanager
def _turn(lock: Path) -> Generator[None]:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with suppress(ImportError):  # Windows: the last writer wins, and the file stays whole
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, document: _Document) -> None:
    """Replace the file in one step; nobody else may read it."""
    text = json.dumps(document.model_dump(by_alias=False), indent=1, sort_keys=True)
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


def _suspicious(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if os.name == "posix" and status.st_uid not in (0, os.getuid()):
        return "it belongs to another user"
    if os.name == "posix" and status.st_mode & _OTHERS_MAY_WRITE:
        return "other users may write to it"
    return None


def _unusable(path: Path, reason: str) -> Trusted:
    return Trusted(
        {}, f"{path} cannot be used, so no folder is trusted: {reason}; `agent-sidecar trust DIR` makes it anew"
    )
