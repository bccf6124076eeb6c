"""`doctor`: looks whether the sidecar can work here, and says what to type where it cannot. It repairs nothing.

`--bundle` puts what it found, and what else a bug report needs, into one file.
"""

import argparse
import asyncio
import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .command import Arguments, Command
from .output import Output, stdout

if TYPE_CHECKING:
    from .checks import Check

_MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        nargs="?",
        const="",
        help="write a .zip for a bug report: findings, versions, configuration, log; no prompts, no keys",
    )


def _execute(arguments: Arguments) -> int:
    from .checks import check_all

    checks = asyncio.run(check_all(arguments))
    if arguments.bundle is not None:
        _bundle(arguments, checks)
        return 0
    can_run = all(check.status != "problem" for check in checks)
    out = stdout()
    if arguments.json:
        found = {"canRun": can_run, "checks": [check._asdict() for check in checks]}
        out.line(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        _show(checks, out, can_run=can_run)
    return 0 if can_run else 1


def _bundle(arguments: Arguments, checks: "list[Check]") -> None:
    from .bundle import default_name, write_bundle
    from .report import report_parts

    path = Path(arguments.bundle) if arguments.bundle else default_name(datetime.now().astimezone())
    parts = report_parts(arguments, checks, os.environ)
    write_bundle(path, parts)
    out = stdout()
    out.line(parts["README.txt"])
    out.line(f"Written to {path}. Look through it before you send it.", "bold")


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
