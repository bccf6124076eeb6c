"""What the benchmarks found, as one table. Measures nothing."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

Unit = Literal["us", "ms", "MB", "/s"]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a figure is measured against, in the same run and the same unit."""

    name: str
    samples: Sequence[float]


@dataclass(frozen=True, slots=True)
class Aim:
    """What the ratio of figure to baseline should be, at most or (for rates) at least."""

    relation: Literal["<=", ">="]
    ratio: float
    why_missed: str
    """What the sidecar does that the baseline does not: printed where the aim is missed."""

    def is_met(self, ratio: float) -> bool:
        """Whether a ratio is good enough."""
        return ratio <= self.ratio if self.relation == "<=" else ratio >= self.ratio


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Samples are in `unit`."""

    name: str
    unit: Unit
    samples: Sequence[float]
    baseline: Baseline | None = None
    aim: Aim | None = None

    @property
    def median(self) -> float:
        """The middle of the samples."""
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """Figure by baseline, medians both."""
        return self.median / statistics.median(self.baseline.samples) if self.baseline is not None else None


def interleaved(times: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Take a sample of each measure in turn, again and again: what disturbs the machine disturbs all of them.

    The first round warms up and is dropped.
    """
    rounds = [[measure() for measure in measures] for _ in range(times + 1)]
    return [list(samples) for samples in zip(*rounds[1:], strict=True)]


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print the table, and a note for each aim that is missed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure")
    for heading in ("agent-sidecar", "baseline"):
        table.add_column(heading, justify="right")
    table.add_column("which is")
    table.add_column("ratio", justify="right")
    table.add_column("aim")
    table.add_column("spread", justify="right")
    for figure in figures:
        table.add_row(*_row(figure))
    console.print(table)
    for figure in figures:
        note = _note(figure)
        if note:
            console.print(note, highlight=False)


def _row(figure: Figure) -> tuple[str, ...]:
    baseline, ratio, aim = figure.baseline, figure.ratio, figure.aim
    verdict = "met" if _is_met(figure) else "missed"
    return (
        figure.name,
        _amount(figure.median, figure.unit),
        _amount(statistics.median(baseline.samples), figure.unit) if baseline is not None else "",
        baseline.name if baseline is not None else "",
        f"{ratio:.2f}x" if ratio is not None else "",
        f"{aim.relation} {aim.ratio:g}x {verdict}" if aim is not None else "",
        f"{_amount(min(figure.samples), figure.unit)} to {_amount(max(figure.samples), figure.unit)}",
    )


def _is_met(figure: Figure) -> bool:
    return figure.aim is None or figure.ratio is None or figure.aim.is_met(figure.ratio)


def _note(figure: Figure) -> str:
    """By how much an aim is missed, and why; nothing if it is met."""
    aim, ratio = figure.aim, figure.ratio
    if aim is None or ratio is None or aim.is_met(ratio):
        return ""
    factor = ratio / aim.ratio if aim.relation == "<=" else aim.ratio / ratio
    return f"{figure.name}: {factor:.1f} times off its aim. {aim.why_missed}"


def _amount(value: float, unit: Unit) -> str:
    return f"{value:,.0f}/s" if unit == "/s" else f"{value:,.1f} {unit}"
