"""`setup embedded`: brings the embedded model and its runtime into this environment, and shows how far it is."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from .command import Arguments, Command
from .output import Output, stdout

if TYPE_CHECKING:
    from rich.console import Console

    from sidecar.models.setup import Progress


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("embedded",), help="embedded: the small model that needs no service")


def _execute(_: Arguments) -> int:
    from sidecar.models.setup import install_embedded

    out = stdout()
    if out.console is None:
        asyncio.run(install_embedded(_Lines(out)))
    else:
        asyncio.run(_install_with_bar(out.console))
    return 0


class _Lines:
    """One line a step, for logs."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._step = ""

    def __call__(self, progress: "Progress") -> None:
        if progress.step != self._step:
            self._step = progress.step
            self._out.line(progress.message)


async def _install_with_bar(console: "Console") -> None:
    """A line that tells the installer's last word, with a bar where the share of a download is known."""
    from rich.markup import escape
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    from sidecar.models.setup import install_embedded

    with Bar(SpinnerColumn(), BarColumn(bar_width=30), TextColumn("{task.description}"), console=console) as bar:
        task = bar.add_task("", total=None)

        def report(progress: "Progress") -> None:
            fraction = 1.0 if progress.step == "done" else progress.fraction
            bar.update(
                task,
                description=escape(progress.message),
                total=None if fraction is None else 1.0,
                completed=fraction or 0.0,
            )

        await install_embedded(report)


COMMAND = Command("setup", "install the embedded model", _configure, _execute)
