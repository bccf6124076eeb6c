"""Which projects' files the user trusts: kept in the user's folder, by real path and content. It reads no project."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from protocol.base import StrictModel
from sidecar.errors import ConfigInvalid

from .files import user_folder
from .user_file import Unusable, changing, read_own, replace_own

VERSION: Final = 1


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
        content = read_own(path)
    except Unusable as error:
        return _unusable(path, str(error))
    if content is None:
        return Trusted({})
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
        with changing(path):
            files = dict(read_trust().files)
            yield files
            document = _Document(version=VERSION, files=files).model_dump(by_alias=False)
            replace_own(path, json.dumps(document, indent=1, sort_keys=True))
    except OSError as error:
        raise ConfigInvalid(f"trust cannot be kept: {error.strerror or type(error).__name__}", file=str(path)) from None


def _unusable(path: Path, reason: str) -> Trusted:
    return Trusted(
        {}, f"{path} cannot be used, so no folder is trusted: {reason}; `agent-sidecar trust DIR` makes it anew"
    )
