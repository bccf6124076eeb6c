"""What a command of the command line is, and the options that they share. Holds no command."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

Arguments = argparse.Namespace


class Command(NamedTuple):
    """One command."""

    name: str
    summary: str
    """One line for the list of commands."""
    configure: Callable[[argparse.ArgumentParser], None]
    """Declares the command's own arguments."""
    execute: Callable[[Arguments], int]
    """Does it; gives the exit code."""
    has_server_options: bool = True
    """Whether it takes the options that go on to a server."""


class CommandError(Exception):
    """Ends a command with one line that says what to do.

    Attributes:
        code: The exit code: 1 failed, 2 wrong usage.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def shared_options(*, again: bool = False) -> argparse.ArgumentParser:
    """The options that every command takes; they go on to the server that it starts.

    Args:
        again: For a command's own subcommands, where what stood before the subcommand must last.
    """
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS if again else None)
    group = parser.add_argument_group("server")
    group.add_argument("--config", metavar="FILE", help="a configuration file, over the user's and the project's")
    group.add_argument("--store", metavar="SPEC", help="where sessions are kept: sqlite:PATH or memory")
    levels = ("debug", "info", "warning", "error")
    group.add_argument("--log-level", choices=levels, help="the least serious records of its log; default: warning")
    group.add_argument("--log-file", metavar="FILE", help="append its log to a file instead of stderr")
    group.add_argument("--record", metavar="FILE", help="write down what is said to it and by it, secrets removed")
    return parser


def serve_arguments(arguments: Arguments) -> list[str]:
    """The shared options as arguments of `serve`."""
    given = {
        "--config": arguments.config,
        "--store": arguments.store,
        "--log-level": arguments.log_level,
        "--log-file": arguments.log_file,
        "--record": arguments.record,
    }
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]
