"""`doctor`: looks whether the sidecar can work here, and says what to type where it cannot. It repairs nothing."""

import argparse
import asyncio
import json
from typing import TYPE_CHECKING

from .command import Arguments, Command
from .output import Output, stdout

if TYPE_CHECKING:
    from .checks import Check

_MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _execute(arguments: Arguments) -> int:
    from .checks import check_all

    checks = asyncio.run(check_all(arguments))
    can_run = all(check.status != "problem" for check in checks)
    out = stdout()
    if arguments.json:
        found = {"canRun": can_run, "checks": [check._asdict() for check in checks]}
        out.line(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        _show(checks, out, can_run=can_run)
    return 0 if can_run else 1


def _show(checks: "list[Check]", out: Output, *, can_run: bool) -> None:
    for check in checks:
        mark, style = _MARKS[check.status]
        out.line(f"{mark} {check.name}: {check.detail}", style)
        if check.fix:
            out.line(f"    → {check.fix}")
    out.line()
    if can_run:
        out.line("The default agent can run.", "bold green")
    else:
        out.line("The default agent cannot run: see the lines marked ✗.", "bold red")


COMMAND = Command("doctor", "look whether everything is in place, and say what to do if not", _configure, _execute)
