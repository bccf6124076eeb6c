"""What the host is asked: the round trip of one tool call, the raw echo beside it; and many open approvals."""

import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from .child import Child, one_core
from .raw_echo import frame
from .report import Aim, Baseline, Figure, interleaved
from .workspace import Workspace, frames, request

_AIM: Final = Aim(
    "<=",
    2.0,
    "The time is the whole call's: the question is numbered, stored and told before it is asked, arguments and answer "
    "are checked, and the call has a task of its own.",
)
_SCRIPT: Final = """\
[[reply]]
when = "once"
when_tool = "probe"
text = "done"

[[reply]]
when = "once"
calls = [{ name = "probe" }]

[[reply]]
when = "often"
calls = [GATED]
"""
_SESSIONS: Final = 100
_CALLS: Final = 10
_SCHEMA: Final = {"type": "object"}


def measure(workspace: Workspace) -> list[Figure]:
    """A host tool's call, and what 1,000 approvals cost while they wait."""
    gated = '{ name = "gated", arguments = { path = "notes.txt" } }'
    script = workspace.folder / "host-calls.toml"
    script.write_text(_SCRIPT.replace("GATED", ", ".join([gated] * _CALLS)), encoding="utf-8")
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.sidecar())
        features = {"initializationOptions": {"sidecar": {"protocolVersions": [1], "features": {"approvals": {}}}}}
        sidecar.ask(request(0, "initialize", **features))
        sidecar.ask(request(1, "getState", include=[]))
        echo = children.enter_context(workspace.echo())
        for name in ("bench", *(f"s{number}" for number in range(_SESSIONS))):
            sidecar.ask(request(2, "createSession", sessionId=name, model=f"scripted:{script}", tools=_tools()))
        with one_core(sidecar, echo):
            echoed, called = interleaved(workspace.times(30, 8), _echo(workspace, echo), _calls(workspace, sidecar))
        before = sidecar.rss_bytes()
        began = time.perf_counter()
        sidecar.write(frames(*(request(10 + n, "run", sessionId=f"s{n}", input="often") for n in range(_SESSIONS))))
        sidecar.skip_to(b'"host/requestApproval"', _SESSIONS * _CALLS)
        asked = (time.perf_counter() - began) * 1e3
        grown = (sidecar.rss_bytes() - before) / 1e6
    return [
        Figure("a host tool's call, one after the other", "us", called, Baseline("raw echo", echoed), _AIM),
        Figure(f"{_SESSIONS * _CALLS:,} approvals on {_SESSIONS} sessions, until all are asked", "ms", [asked]),
        Figure("  what they keep in memory", "MB", [grown]),
    ]


def _tools() -> list[dict[str, Any]]:
    probe = {"name": "probe", "description": "Do nothing.", "inputSchema": _SCHEMA}
    return [probe, {**probe, "name": "gated", "approvalMode": "always_require"}]


def _echo(workspace: Workspace, echo: Child) -> Callable[[], float]:
    data = frame(request(2, "host/callTool", name="probe"))

    def round_trip() -> float:
        began = time.perf_counter()
        echo.write(data)
        echo.read_frame()
        return time.perf_counter() - began

    def sample() -> float:
        return statistics.median(round_trip() for _ in range(workspace.times(40, 20))) * 1e6

    return sample


def _calls(workspace: Workspace, sidecar: Child) -> Callable[[], float]:
    """Microseconds of a call as the host sees it: from the event that tells of it to the one that has its result."""

    def call() -> float:
        sidecar.write(frame(request(3, "run", sessionId="bench", input="once", stream=False)))
        began = spent = 0.0
        while True:
            body = sidecar.read_frame()
            if b'"tool.started"' in body:
                began = time.perf_counter()
            elif b'"host/callTool"' in body:
                sidecar.write(frame(_answer(json.loads(body)["id"])))
            elif b'"tool.completed"' in body:
                spent = (time.perf_counter() - began) * 1e6
            elif b'"id":3' in body:
                return spent

    def sample() -> float:
        return statistics.median(call() for _ in range(workspace.times(40, 20)))

    return sample


def _answer(request_id: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"content": "ok"}}).encode()
