"""What a soak has found so far: counted in JSON, so that the next piece can go on from it, and said in Markdown."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass
class Sample:
    """A sidecar at one instant of the drift part."""

    at_s: float
    rss_kib: int
    descriptors: int
    threads: int
    get_state_worst_ms: float


@dataclass
class Part:
    """Totals of one part over all pieces."""

    seconds: float = 0.0
    batches: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    maxima: dict[str, int] = field(default_factory=dict[str, int])
    failures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Of each failed batch: its seed, and what was broken."""
    samples: list[Sample] = field(default_factory=list[Sample])

    def add(self, **counts: int) -> None:
        """Count."""
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def most(self, **values: int) -> None:
        """Keep the largest."""
        for name, value in values.items():
            self.maxima[name] = max(value, self.maxima.get(name, 0))


@dataclass
class Report:
    """A whole soak."""

    seed: int
    pieces: int = 0
    parts: dict[str, Part] = field(default_factory=dict[str, Part])

    def part(self, name: str) -> Part:
        """One part, made at its first use."""
        return self.parts.setdefault(name, Part())

    @classmethod
    def read(cls, path: Path) -> Self:
        """A report that an earlier piece wrote."""
        found = json.loads(path.read_text("utf-8"))
        parts = {
            name: Part(**{**part, "samples": [Sample(**sample) for sample in part["samples"]]})
            for name, part in found["parts"].items()
        }
        return cls(found["seed"], found["pieces"], parts)

    def write(self, path: Path) -> None:
        """Replace the file, whole."""
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")
        fresh.replace(path)

    @property
    def failed(self) -> bool:
        """Whether any batch broke a promise."""
        return any(part.failures for part in self.parts.values())

    def markdown(self) -> str:
        """The totals."""
        lines = [f"Seed {self.seed}, {self.pieces} pieces.", "", "| part | what | total |", "|---|---|---:|"]
        for name, part in self.parts.items():
            lines.append(f"| {name} | batches | {part.batches} |")
            lines.append(f"| {name} | minutes | {part.seconds / 60:.1f} |")
            lines += [f"| {name} | {what.replace('_', ' ')} | {count:,} |" for what, count in part.counts.items()]
            lines += [f"| {name} | {what.replace('_', ' ')} | {value:,} |" for what, value in part.maxima.items()]
            lines.append(f"| {name} | failed batches | {len(part.failures)} |")
        return "\n".join([*lines, "", *_drift(self.part("drift").samples)])


def _drift(samples: list[Sample]) -> list[str]:
    if len(samples) < 2:
        return []
    chosen = samples[:: max(1, len(samples) // 10)]
    lines = ["| seconds | RSS MiB | descriptors | threads | slowest of 50 getState, ms |", "|---:|---:|---:|---:|---:|"]
    for one in chosen:
        cells = (one.at_s, f"{one.rss_kib / 1024:.1f}", one.descriptors, one.threads, one.get_state_worst_ms)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines
