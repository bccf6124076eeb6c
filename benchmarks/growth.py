"""How cost grows: with open sessions, with the turns of one session, with the size of a message."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from .child import Child
from .cost import Metered
from .raw_echo import frame
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace, frames, request

_ENDED: Final = b'"result":{"runId"'
_ANSWERED: Final = b'"configOptions"'
_LONG: Final = Aim(
    "<=",
    1.2,
    "The scripted model estimates the tokens of the whole request at each call, and a request lists all messages.",
)
_LARGE: Final = Aim(
    "<=", 1.5, "The sidecar copies the text once more than the baseline: from bytes into a message that is validated."
)
_YOUNG: Final = 10
_BATCH: Final = 16


def measure(workspace: Workspace) -> list[Figure]:
    """Each beside the small case, in one run."""
    return [*_with_sessions(workspace), *_with_turns(workspace), *_with_size(workspace)]


def _with_sessions(workspace: Workspace) -> list[Figure]:
    """One session beside many that are open and idle."""
    many, times, count = workspace.times(1_000, 200), workspace.times(10, 4), workspace.times(20, 10)
    with ExitStack() as children:
        few_open = children.enter_context(workspace.ready_sidecar("normal"))
        many_open = children.enter_context(workspace.ready_sidecar("normal"))
        for child in (few_open, many_open):
            _create(child, ["s"])
        before = many_open.rss_bytes()
        _create(many_open, [f"idle-{number}" for number in range(many - 1)])
        after = many_open.rss_bytes()
        alone, among = (Metered(child, count, _runs(child, "s", count)) for child in (few_open, many_open))
        runs = interleaved(times, alone, among)
        creates = interleaved(times, _creates(few_open), _creates(many_open))
    return [
        Figure(f"a run among {many:,} sessions", "us", runs[1], Baseline("a run alone", runs[0])),
        Figure("  its CPU time", "us", among.cpu_us, Baseline("a run alone", alone.cpu_us)),
        Figure(f"createSession beside {many:,} others", "us", creates[1], Baseline("beside one", creates[0])),
        Figure("memory of 1,000 open sessions", "MB", [(after - before) / (many - 1) / 1e3]),
    ]


def _with_turns(workspace: Workspace) -> list[Figure]:
    """A turn of an old session beside one of a young session, in the same process."""
    figures: list[Figure] = []
    times, count = workspace.times(12, 5), workspace.times(10, 5)
    with workspace.ready_sidecar("normal") as child:
        _create(child, ["old"])
        turns = 0
        for reached in (100, 500) if workspace.quick else (100, 1_000, 2_000):
            _advance(child, "old", reached - turns)
            young = Metered(child, count, _young(child, times + 1, count))
            old = Metered(child, count, _runs(child, "old", count))
            samples = interleaved(times, old, young)
            turns = reached + (times + 1) * count
            name = f"the {reached:,}th turn of a session"
            figures += [
                Figure(name, "us", samples[0], Baseline(f"the {_YOUNG}th", samples[1]), _LONG),
                Figure(f"{name}, CPU time", "us", old.cpu_us, Baseline(f"the {_YOUNG}th", young.cpu_us), _LONG),
            ]
    return figures


def _with_size(workspace: Workspace) -> list[Figure]:
    """A request with one long text, to a method that does nothing with it."""
    figures: list[Figure] = []
    with workspace.ready_sidecar() as child, workspace.sink() as sink, workspace.echo() as echo:
        for name, size in (
            ("1 KB", 1 << 10),
            ("64 KB", 1 << 16),
            ("1 MB", 1 << 20),
            ("10 MB", 10 << 20),
            ("16 MB", 1 << 24),
        ):
            data = frame(request(2, "cancelRun", sessionId="bench", reason="x" * size))
            times = workspace.times(12, 4)
            ours, sunk, echoed = interleaved(times, *(_asks(server, data) for server in (child, sink, echo)))
            what = f"params of {name}"
            aim = _LARGE if size >= 10 << 20 else None
            figures.append(Figure(what, "us", ours, Baseline("raw read and json", sunk), aim))
            if aim is not None:
                figures.append(Figure(what, "us", ours, Baseline("raw echo, both ways", echoed)))
    return figures


def _create(child: Child, names: list[str]) -> None:
    for first in range(0, len(names), _BATCH):
        batch = names[first : first + _BATCH]
        creates = (
            request(number, "createSession", sessionId=name, model="scripted:echo") for number, name in enumerate(batch)
        )
        child.write(frames(*creates))
        child.skip_to(_ANSWERED, len(batch))


def _advance(child: Child, session: str, turns: int) -> None:
    """Some more turns, and one by one: a session has one run at a time."""
    _runs(child, session, turns)()


def _young(child: Child, samples: int, count: int) -> Callable[[], float]:
    """Microseconds of a run, around the tenth; each sample has a session of its own, made beforehand."""
    names = [f"young-{time.perf_counter_ns()}-{number}" for number in range(samples)]
    _create(child, names)
    for name in names:
        _advance(child, name, _YOUNG - count // 2)
    return lambda: _runs(child, names.pop(), count)()


def _runs(child: Child, session: str, count: int) -> Callable[[], float]:
    """Microseconds of a run, the mean of some."""
    data = frame(request(2, "run", sessionId=session, input="What is the weather like in Ghent today?"))

    def sample() -> float:
        began = time.perf_counter()
        for _ in range(count):
            child.write(data)
            child.skip_to(_ENDED)
        return (time.perf_counter() - began) / count * 1e6

    return sample


def _creates(child: Child) -> Callable[[], float]:
    """Microseconds of a `createSession`."""

    def sample() -> float:
        names = [f"new-{time.perf_counter_ns()}-{number}" for number in range(5)]
        began = time.perf_counter()
        for name in names:
            _create(child, [name])
        return (time.perf_counter() - began) / len(names) * 1e6

    return sample


def _asks(child: Child, data: bytes) -> Callable[[], float]:
    """Microseconds from the first byte of a request to its answer."""

    def sample() -> float:
        began = time.perf_counter()
        child.write(data)
        child.skip_to(b'"jsonrpc"')
        return (time.perf_counter() - began) * 1e6

    return sample
