"""`setup`: brings the embedded model, or an embedder, into this environment, and shows how far it is."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .command import Arguments, Command
from .output import Output, stdout

if TYPE_CHECKING:
    from rich.console import Console

    from sidecar.models.setup import Progress

    Install = Callable[[Callable[[Progress], None]], Awaitable[object]]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=("embedded", "embeddings"),
        help="embedded: the small model that needs no service; embeddings: what finds memory by its meaning",
    )


def _execute(arguments: Arguments) -> int:
    out = stdout()
    install = _installation(arguments.what)
    asyncio.run(_install_with_lines(install, out) if out.console is None else _install_with_bar(install, out.console))
    return 0


def _installation(what: str) -> "Install":
    if what == "embeddings":
        from sidecar.models.embedders.setup import install_embeddings

        return install_embeddings
    from sidecar.models.setup import install_embedded

    return install_embedded


async def _install_with_lines(install: "Install", out: Output) -> None:
    await install(_Lines(out))


class _Lines:
    """One line a step, for logs."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._step = ""

    def __call__(self, progress: "Progress") -> None:
        if progress.step != self._step:
            self._step = progress.step
            self._out.line(progress.message)


async def _install_with_bar(install: "Install", console: "Console") -> None:
    """A line that tells the installer's last word, with a bar where the share of a download is known."""
    from rich.markup import escape
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

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

        await install(report)


COMMAND = Command("setup", "install the embedded model, or an embedder", _configure, _execute)
