"""Chooses the command, and turns what goes wrong into one line and an exit code. `serve` is handled before this."""

import argparse
import io
import os
import sys
from typing import Final

from protocol.version import VERSION
from sidecar_client import SidecarClientError

from . import (
    acp,
    chat,
    config,
    conformance,
    demo,
    doctor,
    memory,
    new,
    output,
    run,
    schema,
    serve,
    sessions,
    setup,
    trust,
)
from .command import Command, CommandError, shared_options

COMMANDS: Final[tuple[Command, ...]] = (
    serve.COMMAND,
    run.COMMAND,
    chat.COMMAND,
    sessions.COMMAND,
    memory.COMMAND,
    demo.COMMAND,
    setup.COMMAND,
    doctor.COMMAND,
    schema.COMMAND,
    config.COMMAND,
    trust.COMMAND,
    new.COMMAND,
    acp.COMMAND,
    conformance.COMMAND,
)

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: list[str]) -> int:
    """Run one command.

    Args:
        argv: The arguments, without the program's name.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow encoding must not end a command
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # argparse's way to say that it has answered
        return end.code if isinstance(end.code, int) else USAGE
    return _execute(arguments.command, arguments)


def _execute(command: Command, arguments: argparse.Namespace) -> int:
    try:
        return command.execute(arguments)
    except CommandError as error:
        return _fail(str(error), error.code)
    except SidecarClientError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped", INTERRUPTED)
    except BrokenPipeError:  # `… | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        from sidecar.errors import SidecarError  # not before: it costs what most commands can do without

        if isinstance(error, SidecarError):
            return _fail(error.message, FAILED)
        raise


def _fail(message: str, code: int) -> int:
    output.stderr().line(f"agent-sidecar: {message}", "red")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-sidecar",
        description="Hosts LLM agents and context providers behind JSON-RPC 2.0 on stdin and stdout.",
    )
    parser.add_argument("--version", action="version", version=f"agent-sidecar {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    shared = shared_options()
    for command in COMMANDS:
        parents = [shared] if command.has_server_options else []
        sub = commands.add_parser(command.name, help=command.summary, description=command.summary, parents=parents)
        command.configure(sub)
        sub.set_defaults(command=command)
    return parser
