"""An agent with tools that ask, and a model that says what its input names: in a folder, with one store for all."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.bench.acp_client import Acp, Json
from tests.e2e.cli_process import Cli

PLUGIN = '''
from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import tool


@tool(kind="read", title="Look into a file")
def look(path: str) -> str:
    """Look into a file."""
    return f"nothing in {path}"


@tool(approval_mode="always_require", kind="delete")
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@tool(approval_mode="always_require")
def rewrite() -> str:
    """Rewrite a file."""
    return "done"


@tool
async def introduce(ctx: FunctionInvocationContext) -> str:
    """Ask who the user is."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await ctx.run.elicit("Who are you?", schema=schema)
    return f"{answer.action} {answer.content}"


@tool
async def nested(ctx: FunctionInvocationContext) -> str:
    """Ask what no ACP form can ask."""
    schema = {"type": "object", "properties": {"who": {"type": "object", "properties": {}}}}
    return (await ctx.run.elicit("Who?", schema=schema)).action


@tool
async def sign_in(ctx: FunctionInvocationContext) -> str:
    """Sign in."""
    return (await ctx.run.elicit("Please sign in.", url="https://example.org/login")).action
'''
BEGINNING = "Once upon a time"
NAMES = ("look", "remove", "rewrite", "introduce", "nested", "sign_in")

SCRIPT = (
    f'[[reply]]\nwhen_tool = "rewrite"\ntext = "{BEGINNING}"\nstall = true\n'
    + "".join(f'[[reply]]\nwhen_tool = "{name}"\ntext = "It says: {{result}}"\n' for name in NAMES)
    + """
[[reply]]
when = "rewrite"
calls = [{ name = "rewrite" }]
[[reply]]
when = "look"
reasoning = "I should look."
calls = [{ name = "look", arguments = { path = "a.txt" } }]
[[reply]]
when = "remove"
calls = [{ name = "remove", arguments = { path = "a.txt" } }]
[[reply]]
when = "who am I"
calls = [{ name = "introduce" }]
[[reply]]
when = "nested"
calls = [{ name = "nested" }]
[[reply]]
when = "sign in"
calls = [{ name = "sign_in" }]
[[reply]]
when = "story"
text = ["Once upon", " a time"]
stall = true
[[reply]]
when = "long"
text = "and so on"
finish = "length"
[[reply]]
when = "refuse"
text = "no"
finish = "contentFilter"
[[reply]]
when = "fail"
error = "modelQuota"
[[reply]]
when = "."
text = ["You said: ", "{input}"]
"""
)


@asynccontextmanager
async def agents(folder: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts agents in one folder, with one store; all of them end with this."""
    cli = Cli(folder)
    (folder / "plugins").mkdir(mode=0o755)
    (folder / "plugins" / "acp_tools.py").write_text(PLUGIN)
    registered = ", ".join(f'"acp_tools:{name}"' for name in NAMES)
    entries = ", ".join(f'{{ type = "registered", name = "{name}" }}' for name in NAMES)
    (folder / "sidecar.toml").write_text(
        f'plugins = ["plugins"]\ntools = [{registered}]\ndefault_model = "{cli.script(SCRIPT)}"\n'
        f"[agents.default]\ntools = [{entries}]\n"
    )
    async with AsyncExitStack() as stack:

        async def started(*arguments: str, capabilities: Json | None = None, initialize: bool = True) -> Acp:
            given = ("--config", str(folder / "sidecar.toml"), "--store", cli.store, *arguments)
            acp = await stack.enter_async_context(Acp(cli, *given))
            if initialize:
                await acp.initialize(capabilities)
            return acp

        yield started


async def ended_runs(acp: Acp, session: str, count: int) -> list[str]:
    """How the session's runs ended, once so many have."""
    ended: list[str] = []
    asked = {"sessionId": session, "afterSeq": 0, "waitMs": 5_000}
    while len(ended) < count:
        page = await acp.request("_sidecar/getEvents", asked)
        ended += [event["data"]["status"] for event in page["events"] if event["type"] == "run.completed"]
        asked["afterSeq"] = page["lastSeq"]
    return ended


def selected(option: str) -> Json:
    """The user chose an option."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


def opening(acp: Acp, session: str) -> Json:
    """Params that open a stored session."""
    return {"sessionId": session, "cwd": str(acp.folder), "mcpServers": []}
