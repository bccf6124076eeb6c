"""The sidecar beside servers that do as much over pipes: pygls, the `mcp` package and the ACP package."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from benchmarks.child import Child, one_core
from benchmarks.cost import Metered
from benchmarks.raw_echo import frame
from benchmarks.report import Aim, Baseline, Figure, interleaved
from benchmarks.workspace import Workspace, frames, request

from .environment import peer

_MESSAGE: Final = b'"jsonrpc"'
"""Once in every message, whatever its spacing."""
_ENDED: Final = b'"result":{"runId"'
_IN_FLIGHT: Final = 64
_AT_LEAST_RAW: Final = Aim(
    ">=", 0.3, "A request is parsed, validated, put into its session's order and run in a task of its own."
)
_SMALLEST: Final = request(2, "cancelRun", sessionId="bench", reason="bench")
_HELLO: Final = request(1, "initialize", processId=None, rootUri=None, capabilities={})


def measure(workspace: Workspace) -> list[Figure]:
    """Round trips, requests in bulk, streams; the CPU time of each, and the memory afterwards."""
    return [*_beside_pygls(workspace), *_beside_mcp(workspace), *_beside_acp(workspace)]


def _beside_pygls(workspace: Workspace) -> list[Figure]:
    count, times = 2_000, workspace.times(10, 3)  # more would fill the sidecar's queue, which then merges deltas
    script = workspace.folder / "stream.toml"
    script.write_text(f"[[reply]]\nwhen = 'go'\ntext = {['word '] * count}\n", encoding="utf-8")
    event = {"sessionId": "bench", "runId": "run", "seq": 4, "type": "message.delta", "data": {"text": "word "}}
    echo = request(2, "bench/echo", reason="bench", sessionId="bench")
    stream = request(2, "bench/stream", count=count, event=event)
    run = request(2, "run", input="go", options={"model": f"scripted:{script}"})
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar())
        pygls = children.enter_context(peer(workspace, "pygls_server.py"))
        raw = children.enter_context(workspace.echo())
        pygls.write(frame(_HELLO))
        pygls.skip_to(_MESSAGE)
        with one_core(sidecar, pygls):
            ours, theirs = (
                Metered(child, workspace.times(200, 100), _round_trips(child, frame(body), workspace.times(200, 100)))
                for child, body in ((sidecar, _SMALLEST), (pygls, echo))
            )
            trips = interleaved(times, ours, theirs)
        rates = interleaved(
            times, *(_rate(workspace, *pair) for pair in ((sidecar, _SMALLEST), (pygls, echo), (raw, _SMALLEST)))
        )
        deltas = Metered(sidecar, count, _streamed(sidecar, frame(run), b'"type":"message.delta"', count, _ENDED))
        notes = Metered(pygls, count, _streamed(pygls, frame(stream), b'"bench/event"', count, b'"sent"'))
        streams = interleaved(times, deltas, notes)
        memory = _memory(sidecar, pygls, "pygls")
    return [
        Figure("a small request", "us", trips[0], Baseline("pygls, custom method", trips[1])),
        Figure("  its CPU time", "us", ours.cpu_us, Baseline("pygls", theirs.cpu_us)),
        Figure(f"small requests, {_IN_FLIGHT} in flight", "/s", rates[0], Baseline("pygls, custom method", rates[1])),
        Figure(
            f"small requests, {_IN_FLIGHT} in flight", "/s", rates[0], Baseline("raw echo", rates[2]), _AT_LEAST_RAW
        ),
        Figure("streamed events", "/s", streams[0], Baseline("pygls, notifications", streams[1])),
        Figure("  CPU time of one", "us", deltas.cpu_us, Baseline("pygls", notes.cpu_us)),
        memory,
    ]


def _beside_mcp(workspace: Workspace) -> list[Figure]:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    call = request(2, "tools/call", name="echo", arguments={"text": "hello"}) + b"\n"
    run = request(2, "run", sessionId="bench", input="hello", stream=False)
    count, times = workspace.times(100, 40), workspace.times(8, 3)
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar())
        mcp = children.enter_context(peer(workspace, "mcp_server.py"))
        sidecar.ask(request(2, "createSession", sessionId="bench", model="scripted:echo"))
        mcp.write(request(1, "initialize", **hello) + b"\n")
        mcp.skip_to(_MESSAGE)
        mcp.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        with one_core(sidecar, mcp):
            small = Metered(sidecar, count, _round_trips(sidecar, frame(_SMALLEST), count))
            whole = Metered(sidecar, count, _round_trips(sidecar, frame(run), count, _ENDED))
            tool = Metered(mcp, count, _round_trips(mcp, call, count))
            trips = interleaved(times, small, whole, tool)
        memory = _memory(sidecar, mcp, "mcp")
    baseline = Baseline("mcp, a tool call", trips[2])
    return [
        Figure("a small request", "us", trips[0], baseline),
        Figure("  its CPU time", "us", small.cpu_us, Baseline("mcp", tool.cpu_us)),
        Figure("a run, not streamed, store in memory", "us", trips[1], baseline),
        Figure("  its CPU time", "us", whole.cpu_us, Baseline("mcp", tool.cpu_us)),
        memory,
    ]


def _beside_acp(workspace: Workspace) -> list[Figure]:
    updates, count, times = 100, workspace.times(10, 4), workspace.times(8, 3)
    script = workspace.folder / "updates.toml"
    script.write_text(f"[[reply]]\nwhen = 'go'\ntext = {['word '] * updates}\n", encoding="utf-8")
    prompt = request(2, "session/prompt", sessionId="bench", prompt=[{"type": "text", "text": str(updates)}]) + b"\n"
    run = request(2, "run", sessionId="bench", input="go")
    with ExitStack() as children:
        sidecar = children.enter_context(workspace.ready_sidecar())
        acp = children.enter_context(peer(workspace, "acp_agent.py"))
        sidecar.ask(request(2, "createSession", sessionId="bench", model=f"scripted:{script}"))
        for hello in (
            request(0, "initialize", protocolVersion=1, clientCapabilities={}),
            request(1, "session/new", cwd=str(workspace.folder), mcpServers=[]),
        ):
            acp.write(hello + b"\n")
            acp.skip_to(_MESSAGE)
        with one_core(sidecar, acp):
            ours = Metered(sidecar, count, _round_trips(sidecar, frame(run), count, _ENDED))
            theirs = Metered(acp, count, _round_trips(acp, prompt, count, b"end_turn"))
            trips = interleaved(times, ours, theirs)
        memory = _memory(sidecar, acp, "acp")
    return [
        Figure(f"a run with {updates} deltas", "us", trips[0], Baseline("acp, a prompt with as many", trips[1])),
        Figure("  its CPU time", "us", ours.cpu_us, Baseline("acp", theirs.cpu_us)),
        memory,
    ]


def _round_trips(child: Child, data: bytes, count: int, until: bytes = _MESSAGE) -> Callable[[], float]:
    """Microseconds of one, the mean of some."""

    def sample() -> float:
        began = time.perf_counter()
        for _ in range(count):
            child.write(data)
            child.skip_to(until)
        return (time.perf_counter() - began) / count * 1e6

    return sample


def _rate(workspace: Workspace, child: Child, body: bytes) -> Callable[[], float]:
    """A batch is answered before the next one is written."""
    batches = workspace.times(20, 10)
    message = json.loads(body)
    batch = frames(*(json.dumps({**message, "id": number}).encode() for number in range(_IN_FLIGHT)))

    def sample() -> float:
        began = time.perf_counter()
        for _ in range(batches):
            child.write(batch)
            child.skip_to(_MESSAGE, _IN_FLIGHT)
        return batches * _IN_FLIGHT / (time.perf_counter() - began)

    return sample


def _streamed(child: Child, ask: bytes, event: bytes, count: int, ended: bytes) -> Callable[[], float]:
    """From the first event on the pipe to the last."""

    def sample() -> float:
        child.write(ask)
        arrivals = child.skip_to(event, count)
        child.skip_to(ended)
        return arrivals.a_second

    return sample


def _memory(sidecar: Child, other: Child, name: str) -> Figure:
    ours, theirs = sidecar.rss_bytes() / 1e6, other.rss_bytes() / 1e6
    return Figure("  memory after all that", "MB", [ours], Baseline(name, [theirs]))
