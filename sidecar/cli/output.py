"""Writes for people: in colour on a terminal, plain text elsewhere. Rich is imported for a terminal only."""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a model could write to drive the terminal; line feeds and tabs stay."""


class Output:
    """A stream for people.

    Attributes:
        console: Rich's console; None where no terminal is.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.console = _terminal(stream) if stream.isatty() else None

    @property
    def is_terminal(self) -> bool:
        """Whether a person is looking."""
        return self.console is not None

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line; `style` is a Rich style, used on a terminal only."""
        self.write(f"{text}\n", style)

    def write(self, text: str, style: str = "") -> None:
        """Write text as it stands, at once."""
        if self.console is None:
            self._stream.write(text)
        else:
            from rich.text import Text

            self.console.print(Text(_CONTROL.sub("", text), style=style), end="")
        self._stream.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table; where no terminal is, the rows alone, with tabs between the cells."""
        if self.console is None:
            self.write("".join("\t".join(cells) + "\n" for cells in rows))
            return
        from rich.table import Table
        from rich.text import Text

        grid = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for cells in rows:
            grid.add_row(*(Text(_CONTROL.sub("", cell)) for cell in cells))
        self.console.print(grid, soft_wrap=False)


def _terminal(stream: TextIO) -> "Console":
    from rich.console import Console as Terminal

    return Terminal(file=stream, highlight=False, soft_wrap=True)


def stdout() -> Output:
    """Standard output."""
    return Output(sys.stdout)


def stderr() -> Output:
    """Standard error."""
    return Output(sys.stderr)
