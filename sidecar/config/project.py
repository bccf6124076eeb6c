"""The project's `sidecar.toml`: where it is, whether the user trusts it, and what it says. Data of a workspace."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from providers.project_folders import project_folders
from sidecar.errors import ConfigInvalid

from .brought_in import Stamp, digests, plugin_files, plugin_folders, stamp
from .files import CONFIG_NAME, ConfigFile, is_there, read_config, user_config_file
from .layers import Layer
from .trust import TrustedFile, distrust, read_trust, trust, trust_file


@dataclass(frozen=True, slots=True)
class Project:
    """A project's file as it was read."""

    path: Path
    """Its real path."""
    layer: Layer | None
    """What it says; `None` where it cannot be read."""
    error: ConfigInvalid | None
    """Why it cannot be read."""
    trust: Literal["trusted", "untrusted", "changed"]
    changed: str | None
    """The first file that is not as it was when it was trusted."""
    problem: str | None
    """Why nothing is trusted, where that is no choice of the user's."""
    digests: dict[str, str]
    """Path → digest of what it brings in, where it is trusted."""
    stamps: tuple[Stamp, ...]
    """Of everything that was looked at: while these are the same, so is what was read."""
    brings: tuple[str, ...] | None
    """What it brought in when it was trusted, where that was looked at."""

    @property
    def how_to_trust(self) -> str:
        """What a person does about it."""
        if self.problem is not None:
            return self.problem
        command = f"agent-sidecar trust {shlex.quote(str(self.path.parent))}"
        if self.changed is not None:
            return f"{self.changed} changed since it was trusted; look at it, then: {command}"
        return f"it is not trusted; look at it, then: {command}"


def find_project(folder: Path, *, beside: Path | None = None) -> Path | None:
    """The real path of the file that counts for a folder: the nearest one, up to the repository's root.

    Args:
        folder: Where a session works.
        beside: `--config`; what is read as that, or as the user's own file, is no project's.
    """
    try:
        folders = project_folders(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return None
    for candidate in (folder / CONFIG_NAME for folder in reversed(folders)):
        if is_there(candidate):
            others = (user_config_file(), beside)
            if any(other and _same(candidate, other) for other in others):
                return None
            real = _real(candidate)
            return real if real.is_relative_to(folders[0]) else candidate
    return None


def read_project(path: Path) -> Project:
    """Read a file that `find_project` found. It never raises: what is wrong stands in the project."""
    stamps = _stamps(path)  # first: what changes after this is seen the next time
    trusted = read_trust()
    try:
        file = _read_inside(path)
    except ConfigInvalid as error:
        return Project(path, None, error, "untrusted", None, trusted.problem, {}, stamps, None)
    layer = Layer(str(path), file.data, file)
    known = trusted.files.get(portable(path))
    if known is None:
        return Project(path, layer, None, "untrusted", None, trusted.problem, {}, stamps, None)
    if known.sha256 != file.digest:
        return Project(path, layer, None, "changed", str(path), None, {}, stamps, None)
    brings = tuple(known.brings)
    stamps += _other_stamps(file, brings)
    brought, changed = _compared(file, known)
    trust_now = "trusted" if changed is None else "changed"
    return Project(path, layer, None, trust_now, changed, None, brought, stamps, brings)


def may_be_trusted(path: Path) -> bool:
    """Whether the user has trusted this file, as it is now or as it was; quick, for one that is not."""
    return portable(path) in read_trust().files


def is_fresh(project: Project) -> bool:
    """Whether reading it again would give the same."""
    stamps = _stamps(project.path)
    if project.brings is not None and project.layer is not None and project.layer.file is not None:
        stamps += _other_stamps(project.layer.file, project.brings)
    return stamps == project.stamps


def trust_project(path: Path) -> int:
    """Trust a project's file and what it brings in, as they are now; gives how many files that are.

    Raises:
        ConfigInvalid: it cannot be read, brings in too much, or trust cannot be written down.
    """
    file = _read_inside(path)
    brought = digests(file)
    trust(Path(portable(path)), TrustedFile(sha256=file.digest, brings=_portable(brought)))
    return 1 + len(brought)


def distrust_folder(folder: Path, beside: Path | None = None) -> int:
    """Withdraw trust from a folder's project and from all below it; gives how many files that were.

    Raises:
        ConfigInvalid: it cannot be written down.
    """
    path = find_project(folder, beside=beside)
    real = Path(portable(_real(folder)))
    return distrust(real, None if path is None else Path(portable(path)))


def portable(path: Path | str) -> str:
    """A path as JSON can hold it, also where it is no valid Unicode."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _read_inside(path: Path) -> ConfigFile:
    if _real(path) != path:
        raise ConfigInvalid("a link that leads out of the project is not followed", file=str(path))
    return read_config(path)


def _compared(file: ConfigFile, known: TrustedFile) -> tuple[dict[str, str], str | None]:
    """What the file brings in, and the first of it that is not as it was."""
    try:
        brought = digests(file)
    except ConfigInvalid:
        return {}, str(file.path.parent)
    now = _portable(brought)
    differing = (path for path in sorted({*now, *known.brings}) if now.get(path) != known.brings.get(path))
    return brought, next(differing, None)


def _portable(brought: dict[str, str]) -> dict[str, str]:
    return {portable(path): digest for path, digest in brought.items()}


def _stamps(path: Path) -> tuple[Stamp, ...]:
    return stamp(path), stamp(trust_file())


def _other_stamps(file: ConfigFile, brings: tuple[str, ...]) -> tuple[Stamp, ...]:
    """Of what a file brings in: what it brought in once, and what stands in its plug-in folders now."""
    return tuple(stamp(path) for path in dict.fromkeys([*brings, *plugin_files(plugin_folders(file))]))


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path.absolute()
