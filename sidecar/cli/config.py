"""`config check|show|path`: what the configuration is, and which file each value came from."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .command import Arguments, Command
from .output import stdout

if TYPE_CHECKING:
    from sidecar.config.load import Loaded


def load_config(arguments: Arguments) -> "Loaded":
    """The configuration that a server with the same options would have in this folder.

    Raises:
        ConfigInvalid: something is wrong with it.
        CapabilityRequired: a key asks for a feature that this build does not have.
    """
    from sidecar.config.load import load

    return load(
        config_file=Path(arguments.config) if arguments.config else None,
        environ=os.environ,
        store=arguments.store,
        log_level=arguments.log_level,
        folder=Path.cwd(),
    )


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=("check", "show", "path"),
        help="check: is it right · show: all of it, each value with its origin · path: the files",
    )


def _execute(arguments: Arguments) -> int:
    stdout().write({"check": _check, "show": _show, "path": _path}[arguments.what](arguments))
    return 0


def _check(arguments: Arguments) -> str:
    from sidecar.config.show import report

    return report(load_config(arguments)).rstrip("\n") + "\n"


def _show(arguments: Arguments) -> str:
    from sidecar.config.show import show

    return show(load_config(arguments))


def _path(arguments: Arguments) -> str:
    """The files that were read, one a line; where none was, the place where the user's own would be."""
    from sidecar.config.files import user_config_file

    files = load_config(arguments).files or (user_config_file(),)
    return "".join(f"{file}\n" for file in files)


COMMAND = Command("config", "check or show the configuration", _configure, _execute)
