"""What agents may name by themselves: found where it was registered, and refused with words that lead to the fault."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.agents import AgentSpec, MiddlewareEntry
from protocol.tools import PythonTool
from providers import import_thread
from providers.api.agent import CustomAgent
from sidecar.agents.catalog import AgentCatalog, ResolvedAgent
from sidecar.agents.part_lookup import look_up, middleware_of
from sidecar.agents.registered import Registered
from sidecar.agents.workspaces import Workspace
from sidecar.config.load import Loaded
from sidecar.config.model import Config
from sidecar.errors import ConfigInvalid, SidecarError, ToolNotFound
from sidecar.models.registry import Models
from tests.bench.plugin_files import clean_imports, install, write_plugin

TOOLS = """
from providers.api.tool import tool
def add(a: int, b: int) -> int:
    '''Add.'''
    return a + b
@tool(name="sum")
def other(a: int) -> int: return a
@tool(name="web_search")
def search(q: str) -> str: return q
number = 3
class Thing: pass
def two_contexts(*args: int): return 1
"""

MIDDLEWARE = """
from providers.api.middleware import AgentMiddleware, agent_middleware, chat_middleware
from providers.api.provider import ProviderConfig
class Config(ProviderConfig):
    prefix: str
class Stamp(AgentMiddleware):
    config_type = Config
    def __init__(self, config):
        self.prefix = config.prefix
    async def process(self, context, call_next): await call_next()
class Plain(AgentMiddleware):
    async def process(self, context, call_next): await call_next()
@chat_middleware
async def around(context, call_next): await call_next()
async def kindless(context, call_next): await call_next()
@agent_middleware
async def short(context): pass
class NeedsMore(AgentMiddleware):
    def __init__(self, one, two): pass
    async def process(self, context, call_next): await call_next()
class Fails(AgentMiddleware):
    def __init__(self): raise ValueError("secret")
    async def process(self, context, call_next): await call_next()
class Exits(AgentMiddleware):
    def __init__(self): raise SystemExit(3)
    async def process(self, context, call_next): await call_next()
class Odd(AgentMiddleware):
    config_type = dict
    async def process(self, context, call_next): await call_next()
class NoMiddleware: pass
instance = Plain()
"""

AGENTS = """
from providers.api.agent import CustomAgent
from providers.api.provider import ProviderConfig
class Config(ProviderConfig):
    greeting: str = "Hello"
class Greeter(CustomAgent):
    config_type = Config
    async def run(self, request): return self.config.greeting
class Duck:
    def __init__(self, name): self.name = name
    async def run(self, request): return "quack"
class NoAgent: pass
async def run(request): return ""
"""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    with clean_imports():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("plug_tools", TOOLS), ("plug_mw", MIDDLEWARE), ("plug_agents", AGENTS)):
        write_plugin(tmp_path / "plugins", name, text)
    return tmp_path / "plugins"


def workspace(folder: Path | None = None, **config: Any) -> Workspace:
    """A configuration with a folder of plug-ins."""
    whole = Config(**config)
    folders = (folder,) if folder is not None else ()
    return Workspace(
        Loaded(whole, (), (), {}, folders),
        AgentCatalog(whole.agents),
        Models({}),
        Registered(whole.tools, whole.middleware, folders),
    )


def configured(**spec: Any) -> ResolvedAgent:
    return ResolvedAgent("coder", AgentSpec.model_validate(spec))


def inline(**spec: Any) -> ResolvedAgent:
    return ResolvedAgent("inline", AgentSpec.model_validate(spec), is_inline=True)


async def refusal(awaitable: Any, kind: type[SidecarError] = ConfigInvalid) -> str:
    """The words of a refusal; they never hold what a plug-in said itself."""
    with pytest.raises(kind) as refused:
        await awaitable
    assert "secret" not in refused.value.message
    return refused.value.message


# ---- tools ----------------------------------------------------------------------------------------------------------


async def test_a_function_becomes_a_tool_under_its_own_name_and_a_tool_keeps_its_name(folder: Path) -> None:
    registered = Registered(["plug_tools:add", "plug_tools:other"], folders=[folder])

    assert set(await registered.tools()) == {"web_search", "add", "sum"}
    assert (await registered.tool("add")).description == "Add."


async def test_nothing_is_imported_before_it_is_asked_for(folder: Path) -> None:
    Registered(["plug_tools:add"], folders=[folder])

    assert "plug_tools" not in sys.modules


async def test_a_configured_agent_may_name_a_function_that_is_not_registered(folder: Path) -> None:
    agent = configured(tools=[{"type": "python", "import": "plug_tools:add"}])

    parts = await look_up(workspace(folder), agent)

    assert [offered.tool.name for offered in parts.tools] == ["add"]


async def test_what_comes_over_the_wire_names_registered_tools_only(folder: Path) -> None:
    tools = workspace(folder, tools=["plug_tools:add"])

    parts = await look_up(tools, inline(tools=[{"type": "registered", "name": "add"}]))
    message = await refusal(look_up(tools, inline(tools=[{"type": "python", "import": "plug_tools:add"}])))

    assert [offered.tool.name for offered in parts.tools] == ["add"]
    assert "only a configuration file" in message
    assert "plug_tools:add" in message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("plug_nowhere:add", "No module named 'plug_nowhere'"),
        ("plug_tools:nothing", "plug_tools.py has no 'nothing'"),
        ("plug_tools:number", "is no tool, but a int"),
        ("plug_tools:Thing", "is no tool, but a type"),
        ("plug_tools.add", "must be module:name"),
        ("plug_tools:search", "'web_search' is built in"),
    ],
)
async def test_a_tool_that_cannot_be_used_is_refused(folder: Path, path: str, message: str) -> None:
    told = await refusal(Registered([path], folders=[folder]).tools())

    assert message in told
    assert path in told


async def test_two_tools_of_one_name_are_refused(folder: Path) -> None:
    write_plugin(folder, "plug_more", "def add(c: int) -> int: return c")

    told = await refusal(Registered(["plug_tools:add", "plug_more:add"], folders=[folder]).tools())

    assert "two are named 'add'" in told
    assert "plug_more:add" in told


async def test_an_agent_with_two_tools_of_one_name_is_refused(folder: Path) -> None:
    entries = [{"type": "python", "import": "plug_tools:add"}, {"type": "registered", "name": "add"}]

    told = await refusal(look_up(workspace(folder, tools=["plug_tools:add"]), configured(tools=entries)))

    assert "'add'" in told


async def test_an_unknown_tool_is_answered_with_the_nearest_name(folder: Path) -> None:
    registered = Registered(["plug_tools:add"], folders=[folder])

    assert "did you mean 'add'?" in await refusal(registered.tool("ad"), ToolNotFound)
    assert "there are add, web_search" in await refusal(registered.tool("zzz"), ToolNotFound)


async def test_a_tool_that_was_mended_is_found_the_next_time(folder: Path) -> None:
    registered = Registered(["plug_mended:add"], folders=[folder])
    await refusal(registered.tools())

    write_plugin(folder, "plug_mended", TOOLS)

    assert (await registered.tool("add")).name == "add"


# ---- modules that misbehave -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", "raise KeyboardInterrupt", "1 / 0", "raise ValueError('secret')"]
)
async def test_a_module_that_ends_with_an_exception_ends_nothing_else(folder: Path, code: str) -> None:
    write_plugin(folder, "plug_bad", f"\n{code}")

    told = await refusal(Registered(["plug_bad:add"], folders=[folder]).tools())

    assert "cannot be imported" in told
    assert "plug_bad.py, line 2" in told


async def test_an_import_that_hangs_is_given_up_once_for_all_who_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_thread, "IMPORT_S", 0.05)
    write_plugin(folder, "plug_slow", "import threading\nthreading.Event().wait(5)")
    registered = Registered(["plug_slow:add"], folders=[folder])

    told = await refusal(registered.tool("add"))

    assert "still being imported" in told
    assert "plug_slow:add" in told


# ---- middleware -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Plain", "agent"), ("around", "chat"), ("instance", "agent")],
    ids=["class", "function", "object"],
)
async def test_middleware_is_a_class_a_function_or_an_object(folder: Path, name: str, kind: str) -> None:
    found = await Registered(folders=[folder]).middleware(MiddlewareEntry(import_=f"plug_mw:{name}"))

    assert found.kind == kind


async def test_a_class_is_made_with_its_configuration_for_each_that_names_it(folder: Path) -> None:
    registered = Registered(middleware=["plug_mw:Stamp"], folders=[folder])

    one = await registered.middleware(MiddlewareEntry(name="Stamp", config={"prefix": "a"}))
    other = await registered.middleware(MiddlewareEntry(name="Stamp", config={"prefix": "b"}))

    assert [getattr(found.middleware, "prefix", None) for found in (one, other)] == ["a", "b"]
    assert one.name == "Stamp"


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("Stamp", None, "config.prefix: Field required"),
        ("Stamp", {"prefix": 3}, "config.prefix: Input should be a valid string"),
        ("Stamp", {"prefx": "a"}, "did you mean 'prefix'?"),
        ("Plain", {"a": 1}, "takes no config"),
        ("around", {"a": 1}, "takes no config"),
        ("kindless", None, "the kind of kindless cannot be told"),
        ("short", None, "must take (context, call_next)"),
        ("NeedsMore", None, "must take 0 arguments"),
        ("Fails", None, "cannot be made: ValueError"),
        ("Exits", None, "cannot be made: SystemExit"),
        ("Odd", None, "config_type is no subclass of ProviderConfig"),
        ("NoMiddleware", None, "the class NoMiddleware is no middleware"),
        ("Missing", None, "has no 'Missing'"),
    ],
)
async def test_middleware_that_cannot_be_used_is_refused(folder: Path, name: str, config: Any, message: str) -> None:
    registered = Registered(folders=[folder])

    told = await refusal(registered.middleware(MiddlewareEntry(import_=f"plug_mw:{name}", config=config), "/s.toml"))

    assert message in told
    assert told.startswith("/s.toml: ")
    assert f"plug_mw:{name}" in told


async def test_two_middleware_of_one_name_are_refused(folder: Path) -> None:
    write_plugin(folder, "plug_more", MIDDLEWARE)
    registered = Registered(middleware=["plug_mw:Plain", "plug_more:Plain"], folders=[folder])

    told = await refusal(registered.middleware(MiddlewareEntry(name="Plain")))

    assert "two are named 'Plain': plug_mw:Plain, plug_more:Plain" in told


async def test_a_run_names_registered_middleware_only(folder: Path) -> None:
    space = workspace(folder, middleware=["plug_mw:Plain"])

    assert [bound.name for bound in await middleware_of(space, [MiddlewareEntry(name="Plain")])] == ["Plain"]
    assert "did you mean 'Plain'?" in await refusal(middleware_of(space, [MiddlewareEntry(name="Plian")]))
    assert "only a configuration file" in await refusal(
        middleware_of(space, [MiddlewareEntry(import_="plug_mw:Plain")])
    )


async def test_without_anything_registered_the_refusal_names_nothing() -> None:
    assert await refusal(Registered().middleware(MiddlewareEntry(name="x"))) == "no middleware 'x' is registered"


# ---- agents ---------------------------------------------------------------------------------------------------------


async def test_an_agent_s_implementation_is_made_with_its_name_and_configuration(folder: Path) -> None:
    agent = configured(implementation="plug_agents:Greeter", implementationConfig={"greeting": "Hi"})

    made = (await look_up(workspace(folder), agent)).implementation

    assert isinstance(made, CustomAgent)
    assert made.name == "coder"
    assert made.config.model_dump() == {"greeting": "Hi"}


async def test_a_class_with_a_run_need_not_inherit(folder: Path) -> None:
    made = (await look_up(workspace(folder), configured(implementation="plug_agents:Duck"))).implementation

    assert made is not None
    assert made.name == "coder"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"implementation": "plug_agents:NoAgent"}, "is no class with a method run"),
        ({"implementation": "plug_agents:run"}, "is no class with a method run"),
        ({"implementation": "plug_agents:Nothing"}, "has no 'Nothing'"),
        ({"implementation": "plug_nowhere:A"}, "No module named 'plug_nowhere'"),
        (
            {"implementation": "plug_agents:Greeter", "implementationConfig": {"greting": ""}},
            "did you mean 'greeting'?",
        ),
        ({"implementation": "plug_agents:Duck", "implementationConfig": {"a": 1}}, "takes no config"),
        ({"implementation": "greter"}, "no implementation 'greter' is installed"),
        ({"implementationConfig": {}}, "implementationConfig without implementation"),
    ],
)
async def test_an_implementation_that_cannot_be_used_is_refused(
    folder: Path, spec: dict[str, Any], message: str
) -> None:
    told = await refusal(look_up(workspace(folder), configured(**spec)))

    assert message in told
    assert "'coder'" in told


async def test_a_host_s_agent_may_not_name_an_import_path(folder: Path) -> None:
    told = await refusal(look_up(workspace(folder), inline(implementation="plug_agents:Greeter")))

    assert "only a configuration file" in told


# ---- what is installed ----------------------------------------------------------------------------------------------


async def test_an_installed_package_offers_each_kind_also_for_the_wire(tmp_path: Path) -> None:
    modules = {"plug_tools": TOOLS, "plug_mw": MIDDLEWARE, "plug_agents": AGENTS}
    site = install(
        tmp_path / "site",
        modules,
        tools="adder = plug_tools:add\nbroken = plug_tools:number",
        middleware="around = plug_mw:around",
        agents="greeter = plug_agents:Greeter",
    )
    sys.path.append(str(site))
    agent = inline(
        tools=[{"type": "registered", "name": "adder"}], middleware=[{"name": "around"}], implementation="greeter"
    )

    parts = await look_up(workspace(), agent)

    assert [offered.tool.name for offered in parts.tools] == ["add"]
    assert [bound.kind for bound in parts.middleware] == ["chat"]
    assert parts.implementation is not None
    assert "did you mean 'adder'?" in await refusal(Registered().tool("addr"), ToolNotFound)
    assert "did you mean 'greeter'?" in await refusal(look_up(workspace(), inline(implementation="greter")))
    assert "'broken (plug_tools:number, plug-dist)'" in await refusal(Registered().tool("broken"))


def test_the_key_import_is_an_alias_of_python_tools() -> None:
    assert PythonTool.model_validate({"type": "python", "import": "a:b"}).import_ == "a:b"
