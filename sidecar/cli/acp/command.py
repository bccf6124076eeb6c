"""`acp` as the list of commands knows it: its options, and the process around the front. Speaks nothing itself."""

import argparse
import asyncio
from importlib.util import find_spec

from sidecar.cli.command import Arguments, Command, CommandError, serve_arguments
from sidecar_client.types import CreateKeywords

EXTRA = "agent-sidecar acp needs a package that is not here: install agent-sidecar[acp]"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="the agent of new sessions; default: the configuration's")
    parser.add_argument("--model", metavar="MODEL", help="their model, endpoint:model, e.g. openai:gpt-4.1-mini")


def _execute(arguments: Arguments) -> int:
    """Serve one client until its end.

    Raises:
        CommandError: The extra is not installed.
    """
    if find_spec("acp") is None:
        raise CommandError(EXTRA)
    from sidecar.transport import stdio

    inbound, outbound = stdio.claim()
    from .process import serve

    new_session: CreateKeywords = {}
    if arguments.agent is not None:
        new_session["agent"] = arguments.agent
    if arguments.model is not None:
        new_session["model"] = arguments.model
    return asyncio.run(serve(inbound, outbound, serve_arguments(arguments), new_session))


COMMAND = Command("acp", "speak the Agent Client Protocol with an editor, on stdin and stdout", _configure, _execute)
