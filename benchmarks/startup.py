"""From spawning the process to its first words; Python importing asyncio, and Python doing nothing, beside it."""

from collections.abc import Callable
from typing import Final

from .child import Child
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace, frames, request

_AIM: Final = Aim(
    "<=", 1.0, "Only the standard library's json is imported before the answer: see python -X importtime."
)
_INITIALIZE: Final = request(1, "initialize", processId=None, rootUri=None, capabilities={})
_TO_FIRST_EVENT: Final = (
    _INITIALIZE,
    request(2, "createSession", sessionId="bench", model="scripted:echo"),
    request(3, "run", sessionId="bench", input="hello"),
)
_ANSWER: Final = b'"serverInfo"'
_EVENT: Final = b'"run/event"'
_SAYS: Final = "import os{}; os.write(1, b'.')"
"""A baseline speaks as soon as it can: the end of the interpreter is not part of it."""


def measure(workspace: Workspace) -> list[Figure]:
    """Milliseconds; a script writes all its requests at once."""
    asyncio, nothing, headers, lines, event = interleaved(
        workspace.times(20, 6),
        _first_words(lambda: workspace.python("-c", _SAYS.format(", asyncio")), b"", b"."),
        _first_words(lambda: workspace.python("-c", _SAYS.format("")), b"", b"."),
        _first_words(workspace.sidecar, frames(_INITIALIZE), _ANSWER),
        _first_words(workspace.sidecar, _INITIALIZE + b"\n", _ANSWER),
        _first_words(workspace.sidecar, frames(*_TO_FIRST_EVENT), _EVENT),
    )
    baseline = Baseline("python, import asyncio", asyncio)
    return [
        Figure("spawn to the answer of initialize, headers", "ms", headers, baseline, _AIM),
        Figure("spawn to the answer of initialize, NDJSON", "ms", lines, baseline, _AIM),
        Figure("the same with headers", "ms", headers, Baseline("python, nothing", nothing)),
        Figure("spawn to the first run event", "ms", event, baseline),
    ]


def _first_words(start: Callable[[], Child], says: bytes, until: bytes) -> Callable[[], float]:
    def sample() -> float:
        with start() as child:
            child.write(says)
            return (child.skip_to(until).last - child.born) * 1000

    return sample
