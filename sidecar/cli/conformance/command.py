"""`conformance` as a command: what it is given, and its exit code. Examines nothing itself."""

import argparse
import asyncio
import os
import shutil
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sidecar.cli.command import Arguments, Command, CommandError
from sidecar.cli.output import stdout

if TYPE_CHECKING:
    from .conversations import Conversation
    from .examination import Outcome
    from .report import Verdict

_USAGE: Final = 2
_PATIENCE_S: Final = 10.0
_STOPPING: Final = (signal.SIGTERM, signal.SIGHUP)
"""As Ctrl-C, of which asyncio takes care."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "agent-sidecar conformance [--only NAME]... [--json] [--timeout SECONDS] [--logs FOLDER] "
        "[--jobs N] -- CMD...\n"
        "       agent-sidecar conformance --log FILE [--json]\n"
        "       agent-sidecar conformance --list"
    )
    parser.add_argument("driver", nargs="*", metavar="CMD", help="a driver of the client; see docs/hosts.md")
    parser.add_argument("--log", metavar="FILE", help="hold a record of `serve --record` against the rules instead")
    parser.add_argument("--list", action="store_true", help="name the conversations, and why some are not played")
    parser.add_argument("--only", action="append", metavar="NAME", help="play this conversation; may be given again")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--timeout", type=float, default=_PATIENCE_S, metavar="SECONDS", help="wait so long for each thing; default: 10"
    )
    parser.add_argument("--logs", metavar="FOLDER", help="keep what passed over the wire, one file a conversation")
    jobs = "play so many at the same time; default: as many as there are processors"
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help=jobs)


def _execute(arguments: Arguments) -> int:
    if arguments.jobs < 1:
        raise CommandError("--jobs is 1 or more", _USAGE)
    if sum((bool(arguments.driver), arguments.log is not None, arguments.list)) != 1:
        raise CommandError("say what to examine: `-- CMD...`, a driver, or `--log FILE`; or say `--list`", _USAGE)
    if arguments.list:
        return _list(arguments)
    if arguments.log is not None:
        return _examine_log(arguments)
    program: str = arguments.driver[0]
    if shutil.which(program) is None:
        raise CommandError(f"there is no program {program!r}", _USAGE)
    try:
        return asyncio.run(_unless_stopped(_examine(_chosen(arguments), arguments)))
    except* BrokenPipeError:  # `… | head`: what the command line makes of it, it makes of the error alone
        pass
    raise BrokenPipeError


def _chosen(arguments: Arguments) -> "list[Conversation]":
    from .conversations import conversations

    there = conversations()
    unknown = set(arguments.only or ()) - {conversation.name for conversation in there}
    if unknown:
        raise CommandError(f"there is no conversation {min(unknown)!r}; see --list", _USAGE)
    return [each for each in there if not arguments.only or each.name in arguments.only]


def _list(arguments: Arguments) -> int:
    from . import report

    chosen = _chosen(arguments)
    if arguments.json:
        stdout().line(report.list_as_json(chosen))
    else:
        report.show_list(chosen, stdout())
    return 0


def _examine_log(arguments: Arguments) -> int:
    from . import report
    from .conversations import is_ended, read
    from .rules import check

    try:
        lines = read(Path(arguments.log))
    except (OSError, ValueError) as error:
        raise CommandError(f"{arguments.log} cannot be read: {error}", _USAGE) from error
    findings, ended = check(lines), is_ended(lines)
    if arguments.json:
        stdout().line(report.findings_as_json(findings, ended=ended))
    else:
        report.show_record(findings, stdout(), ended=ended)
    return 1 if findings else 0


async def _unless_stopped(work: Coroutine[Any, Any, int]) -> int:
    """Do it; where a signal asks for the end, clear up first, as after Ctrl-C.

    Raises:
        CommandError: a signal has asked.
    """
    task, loop = asyncio.create_task(work), asyncio.get_running_loop()
    came = list[int]()

    def stop(number: int) -> None:
        if not came:
            came.append(number)
            task.cancel()

    for number in _STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:  # else somebody wants it to be ignored: `nohup`
            loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not came:
            raise
        raise CommandError("stopped", 128 + came[0]) from None


async def _examine(chosen: "list[Conversation]", arguments: Arguments) -> int:
    from . import report

    out = stdout()
    limit = asyncio.Semaphore(max(1, arguments.jobs))
    verdicts = list["Verdict"]()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_judge(each, arguments, limit)) for each in chosen]
        for task in tasks:
            verdicts.append(await task)
            if not arguments.json:
                report.show(verdicts[-1], out)
    if arguments.json:
        out.line(report.as_json(verdicts))
    else:
        report.show_count(verdicts, out)
    return 1 if any(verdict.status == "broken" for verdict in verdicts) else 0


async def _judge(conversation: "Conversation", arguments: Arguments, limit: asyncio.Semaphore) -> "Verdict":
    """Play a conversation; in rough weather too, if nothing is wrong in calm weather."""
    from .examination import examine
    from .report import Verdict

    if conversation.obstacle is not None:
        return Verdict(conversation.name, conversation.obstacle)
    outcomes = list["Outcome"]()
    async with limit:
        for weather in ("calm", "rough"):
            outcome = await examine(conversation, arguments.driver, weather, arguments.timeout)
            outcomes.append(outcome)
            if arguments.logs is not None:
                _keep(outcome, Path(arguments.logs) / f"{conversation.name}.{weather}.jsonl")
            if outcome.findings:
                break
    return Verdict(conversation.name, outcomes=outcomes)


def _keep(outcome: "Outcome", path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line.text()}\n" for line in outcome.log), "utf-8", "backslashreplace")


COMMAND: Final = Command(
    "conformance",
    "hold a client, or a recorded conversation, against the contract",
    _configure,
    _execute,
    has_server_options=False,
)
