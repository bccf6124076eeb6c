"""`trust DIR`: let a project's `sidecar.toml` count, as it is now. It shows what that takes in, and runs none of it."""

import argparse
from pathlib import Path

from .command import Arguments, Command, CommandError
from .output import stdout


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the project's folder, or one inside it")
    parser.add_argument("--remove", action="store_true", help="trust DIR, and everything below it, no longer")
    parser.add_argument("--list", action="store_true", help="list the files that are trusted")


def _execute(arguments: Arguments) -> int:
    if arguments.list:
        return _list()
    if arguments.folder is None:
        raise CommandError("name a folder: agent-sidecar trust DIR", 2)
    folder = Path(arguments.folder)
    config = Path(arguments.config) if arguments.config else None
    return _remove(folder, config) if arguments.remove else _trust(folder, config)


def _trust(folder: Path, config: Path | None) -> int:
    from sidecar.config.project import find_project, trust_project

    if not folder.is_dir():
        raise CommandError(f"{folder} is no folder", 2)
    path = find_project(folder, beside=config)
    if path is None:
        raise CommandError(f"{folder} has no sidecar.toml, nor has the repository around it; there is nothing to trust")
    count = trust_project(path)
    others = f" and what it brings in ({count - 1})" if count > 1 else ""
    stdout().line(f"trusted: {path}{others}; a change asks again")
    return 0


def _remove(folder: Path, config: Path | None) -> int:
    from sidecar.config.project import distrust_folder

    count = distrust_folder(folder, beside=config)
    stdout().line(f"no longer trusted: {count} file{'' if count == 1 else 's'}")
    return 0


def _list() -> int:
    from sidecar.config.trust import read_trust

    trusted = read_trust()
    if trusted.problem is not None:
        raise CommandError(trusted.problem)
    for path in sorted(trusted.files):
        stdout().line(path)
    return 0


COMMAND = Command("trust", "let a project's configuration count, or no longer", _configure, _execute)
