"""What was found to be not as it should be, and on which side. Finds nothing itself."""

from dataclasses import dataclass
from typing import Literal

Side = Literal["client", "sidecar"]


@dataclass(frozen=True)
class Finding:
    """One fault."""

    side: Side
    """Who is at fault."""
    text: str
    """What is wrong, and what is due instead."""
    line: int | None = None
    """Where it shows: a line of the log, counted from 1; None where the fault is in no line."""

    def __str__(self) -> str:
        return f"{self.side}: {f'line {self.line}: ' if self.line else ''}{self.text}"
