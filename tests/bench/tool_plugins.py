"""A configuration whose default agent has tools, good and bad, from a module of its own. Tests only."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.waiting import eventually

_MODULE: Final = '''
"""Tools for tests: what they do to the world stands in `effects.log` beside this file."""

import asyncio
import logging
import subprocess
import sys
import time
import warnings
from pathlib import Path

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import ToolError, tool

EFFECTS = Path(__file__).with_name("effects.log")


def effect(text):
    with EFFECTS.open("a") as file:
        file.write(text + "\\n")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def place_order(dish: str, seconds: float = 0.0) -> str:
    """Order a dish; the kitchen takes its time."""
    effect(dish)
    await asyncio.sleep(seconds)
    return f"ordered {dish}"


@tool
def block(seconds: float = 30.0) -> str:
    """Block a thread."""
    effect("block")
    time.sleep(seconds)
    return "done"


@tool
def fail(text: str = "password=hunter2") -> str:
    """Fail."""
    raise ValueError(text)


@tool
def say_no(why: str) -> str:
    """Tell the model what is wrong."""
    raise ToolError(why)


@tool
def leave() -> str:
    """End the process, or try to."""
    sys.exit(3)


@tool
def noisy() -> str:
    """Write wherever a careless tool writes."""
    print("debug")
    sys.stdout.write("no newline")
    sys.__stdout__.write("really")
    logging.basicConfig(stream=sys.stdout, force=True)
    logging.warning("logged")
    warnings.warn("warned", stacklevel=1)
    subprocess.run(["echo", "a child's words"], check=True)
    return "quiet"


@tool
def flood(megabytes: int = 8) -> str:
    """Return far too much."""
    return "x" * (megabytes << 20)


@tool
def child(seconds: int = 300) -> str:
    """Wait for a child process."""
    effect("child")
    subprocess.run(["sleep", str(seconds)], check=False)
    return "slept"


@tool
def who(ctx: FunctionInvocationContext) -> dict:
    """Tell what the run told this tool."""
    return {
        "kwargs": ctx.kwargs,
        "session": None if ctx.session is None else ctx.session.session_id,
        "properties": dict(ctx.run.properties),
    }


@tool
def remember(topic: str, ctx: FunctionInvocationContext) -> str:
    """Keep a topic in the session's state."""
    if ctx.session is None:
        raise ToolError("There is no session to remember it in.")
    ctx.session.state["topic"] = topic
    ctx.progress(f"keeping {topic}")
    return "kept"
'''

NAMES: Final = ("add", "place_order", "block", "fail", "say_no", "leave", "noisy", "flood", "child", "who", "remember")


@dataclass(frozen=True)
class ToolPlugins:
    """Where the module and the configuration are."""

    folder: Path

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments of a sidecar with these tools."""
        return ("--config", str(self.folder / "sidecar.toml"))

    @property
    def effects(self) -> list[str]:
        """What the tools have done, in order."""
        log = self.folder / "plugins" / "effects.log"
        return log.read_text().splitlines() if log.exists() else []

    async def acted(self) -> None:
        """Wait until a tool has done something."""
        await eventually(lambda: self.effects)


def tool_plugins(
    folder: Path, *, module: str = "", tools: tuple[str, ...] = (), config: str = "", agent: str = ""
) -> ToolPlugins:
    """Write them.

    Args:
        folder: Where.
        module: More code for the module.
        tools: More names of tools in it.
        config: More of the configuration's head.
        agent: More of the default agent's table.
    """
    plugins = folder / "plugins"
    plugins.mkdir(mode=0o755)
    (plugins / "bench_tools.py").write_text(_MODULE + textwrap.dedent(module))
    names = (*NAMES, *tools)
    registered = ", ".join(f'"bench_tools:{name}"' for name in names)
    entries = ", ".join(f'{{ type = "registered", name = "{name}" }}' for name in names)
    (folder / "sidecar.toml").write_text(
        f'plugins = ["plugins"]\ntools = [{registered}]\n{textwrap.dedent(config)}\n'
        f"[agents.default]\ntools = [{entries}]\n{textwrap.dedent(agent)}\n"
    )
    return ToolPlugins(folder)
