"""`setup embedded`: brings the embedded model and its runtime into this environment."""

import argparse

from .command import Arguments, Command
from .output import stdout


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("embedded",), help="embedded: the small model that needs no service")


def _execute(_: Arguments) -> int:
    stdout().line("")
    return 0


COMMAND = Command("setup", "install the embedded model", _configure, _execute)
