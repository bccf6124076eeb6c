"""`serve` as far as the list of commands knows it. The server's own command line is `sidecar.options`."""

import argparse

from sidecar.options import USAGE

from .command import Arguments, Command
from .output import stdout


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = USAGE.removeprefix("usage: ")
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)


def _execute(_: Arguments) -> int:
    stdout().write(USAGE)
    return 0


COMMAND = Command("serve", "speak JSON-RPC on stdin and stdout", _configure, _execute)
