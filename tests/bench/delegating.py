"""Agents that call each other, and a model that knows which of them is asking. Tests only.

The fake model is told the agents by their instructions: `PARTS["boss"]` answers a request whose system text says
`I am boss.`; each part is a function from the request to what is said.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.fake_model import TC, F, FakeModel, Item, Recorded, Reply, T
from tests.bench.host import FakeHost
from tests.bench.tool_plugins import ToolPlugins, tool_plugins
from tests.bench.wire import Json

Said = Reply | Sequence[Item]
Part = Callable[[Recorded], Said]

AGENTS: Final = """
[agents.boss]
instructions = "I am boss."

[[agents.boss.tools]]
type = "agent"
agent = "Research Agent"

[[agents.boss.tools]]
type = "agent"
agent = "Research Agent"
name = "shared"
description = "Research, and leave it in the session."
arg_name = "query"
arg_description = "what to look for"
propagate_session = true

[agents."Research Agent"]
description = "Finds things out."
instructions = "I am researcher."
tools = [
  { type = "registered", name = "remember" },
  { type = "registered", name = "who" },
  { type = "registered", name = "stubborn" },
]
context_providers = [
  { type = "history" },
  { type = "history", source_id = "audit", config = { load_messages = false } },
]

[agents.ping]
instructions = "I am ping."
tools = [{ type = "agent", agent = "pong" }]

[agents.pong]
instructions = "I am pong."
tools = [{ type = "agent", agent = "ping" }]
"""


_MODULE: Final = '''
@tool
async def stubborn() -> str:
    """Make nothing of being cancelled."""
    for _ in range(20):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            effect("cancelled")
    return "done"
'''


def agents(folder: Path) -> ToolPlugins:
    """A configuration with these agents, and some tools for them."""
    return tool_plugins(folder, config=AGENTS, module=_MODULE, tools=("stubborn",))


def asks(*calls: tuple[str, Json]) -> list[Item]:
    """An answer that calls tools, with the call ids `c0`, `c1` …"""
    chunks = [TC(index, f"c{index}", name, json.dumps(arguments)) for index, (name, arguments) in enumerate(calls)]
    return [*chunks, F("tool_calls")]


def cast(model: FakeModel, **parts: Part | Sequence[Said]) -> None:
    """Give each agent its part: a function, or its answers by how many answers it has given in this run already."""

    def answer(request: Recorded) -> Said:
        name = next(name for name in parts if f"I am {name}." in request.system)
        part = parts[name]
        if callable(part):
            return part(request)
        last = max(index for index, role in enumerate(request.roles) if role == "user")
        return part[request.roles[last:].count("assistant")]

    model.otherwise(answer)


def of(model: FakeModel, name: str) -> list[Recorded]:
    """The requests that an agent has made."""
    return [request for request in model.requests if f"I am {name}." in request.system]


def said(text: str) -> list[Item]:
    """An answer of text."""
    return [T(text), F()]


def of_children(events: Sequence[Json]) -> list[Json]:
    """The events of delegated runs."""
    return [event for event in events if "parentRunId" in event]


def shown(events: Sequence[Json], run_id: str) -> list[tuple[str, str]]:
    """Durable events, those of providers left out, and whose they are."""
    return [
        ("boss" if event["runId"] == run_id else "child", event["type"])
        for event in events
        if not event.get("ephemeral") and not event["type"].startswith("provider.")
    ]


def starter(start_host: Any, folder: Path, model: FakeModel) -> Callable[..., Awaitable[FakeHost]]:
    """Starts sidecars with these agents and some limits, all of one folder."""
    plugins = agents(folder)

    async def start(*, limits: str = "", env: dict[str, str] | None = None, **options: Any) -> FakeHost:
        with (folder / "sidecar.toml").open("a") as file:
            file.write(f"\n[limits]\n{limits}\n" if limits else "")
        return await start_host(args=plugins.args, env={**model.environment, **(env or {})}, **options)

    return start
