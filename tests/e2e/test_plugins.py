"""Plug-ins over the wire: found where they are named, whatever kind they are; a bad one hurts nobody else."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.config.project import trust_project
from tests.bench.host import FakeHost
from tests.bench.plugin_files import install, write_plugin

EVERYTHING = """
import asyncio, sys, time
print("printed at import")
from providers.api.agent import CustomAgent
from providers.api.chat_client import GetResponseClient
from providers.api.middleware import AgentMiddleware
from providers.api.simple import SimpleProvider
from providers.api.tool import tool

class Note(SimpleProvider):
    async def provide(self, request):
        return "a note"
    async def store(self, exchange):
        exchange.state["heard"] = exchange.response_text

@tool
def twice(text: str) -> str:
    "Say it twice."
    return text * 2

class Stamp(AgentMiddleware):
    async def process(self, context, call_next):
        context.session.state["stamped"] = True
        await call_next()

class Client(GetResponseClient):
    async def get_response(self, messages, *, options=None, client_kwargs=None, **kwargs):
        return f"{options.get('instructions')} {client_kwargs}"

class Slow(GetResponseClient):
    def get_response(self, messages, *, options=None, client_kwargs=None, **kwargs):
        time.sleep(30)

class Agent(CustomAgent):
    async def run(self, request):
        print("printed in a run")
        yield f"{len(request.messages)} "
        yield request.instructions
        if "wait" in request.input_text:
            await asyncio.Event().wait()
        if "fail" in request.input_text:
            raise ValueError("secret")
        if "exit" in request.input_text:
            sys.exit(3)
"""

CONFIG = """
plugins = ["plugins"]
default_model = "scripted:echo"
tools = ["plug_all:twice"]
middleware = ["plug_all:Stamp"]

[endpoints.mine]
type = "plug_all:Client"

[endpoints.slow]
type = "plug_all:Slow"

[agents.chatty]
model = "mine:m"
tools = [{ type = "python", import = "plug_all:twice" }]
middleware = [{ import = "plug_all:Stamp" }]

[[agents.chatty.context_providers]]
type = "plug_all:Note"
source_id = "note"

[agents.coded]
instructions = "Be kind."
implementation = "plug_all:Agent"
middleware = ["STAMP"]

[[agents.coded.context_providers]]
type = "plug_all:Note"
source_id = "note"
""".replace('"STAMP"', '{ name = "Stamp" }')


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_plugin(tmp_path / "plugins", "plug_all", EVERYTHING)
    file = tmp_path / "sidecar.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
async def host(start_host: Callable[..., Any], config: Path) -> FakeHost:
    return await start_host(args=("--config", str(config)))


# ---- where they are named --------------------------------------------------------------------------------------------


async def test_a_client_a_tool_middleware_and_a_provider_work_together(host: FakeHost) -> None:
    session = await host.create_session(agent="chatty")

    result = await session.run("hi", clientKwargs={"tenant": "a"})

    assert result["text"] == "a note {'tenant': 'a'}"
    assert (await session.state())["state"] == {"note": {"heard": result["text"]}, "stamped": True}
    assert b"printed at import" in host.stderr


async def test_a_project_s_plug_ins_count_once_it_is_trusted(
    start_host: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    host = await start_host(env=environment)
    untrusted = await host.create_session(agent="coded", cwd=str(tmp_path), model="scripted:echo")
    assert "agents.coded.implementation" in untrusted.opened["warnings"][0]["message"]
    assert (await untrusted.run("hi"))["text"] == "hi"
    assert b"printed at import" not in host.stderr

    trust_project(config)

    session = await host.create_session(agent="coded", cwd=str(tmp_path))
    assert (await session.run("hi"))["text"] == "1 Be kind.\na note"


async def test_installed_plug_ins_of_each_kind_may_be_named_over_the_wire(
    start_host: Callable[..., Any], tmp_path: Path
) -> None:
    site = install(
        tmp_path / "site",
        {"plug_all": EVERYTHING},
        providers="note = plug_all:Note",
        tools="twice = plug_all:twice",
        middleware="stamp = plug_all:Stamp",
        chat_clients="house = plug_all:Client",
        agents="coded = plug_all:Agent",
    )
    config = tmp_path / "sidecar.toml"
    config.write_text('[endpoints.mine]\ntype = "house"')
    host = await start_host(args=("--config", str(config)), env={"PYTHONPATH": str(site)})

    chatty = await host.create_session(
        agent={
            "model": "mine:m",
            "tools": [{"type": "registered", "name": "twice"}],
            "middleware": [{"name": "stamp"}],
            "contextProviders": [{"type": "note"}],
        }
    )
    coded = await host.create_session(agent={"implementation": "coded"})

    assert (await chatty.run("hi"))["text"] == "a note {}"
    assert (await chatty.state())["state"]["stamped"] is True
    assert (await coded.run("hi"))["text"] == "1 "
    types = [row["type"] for row in (await host.request("listProviders"))["items"]]
    assert "note" in types


@pytest.mark.parametrize(
    "spec",
    [
        {"implementation": "plug_all:Agent"},
        {"tools": [{"type": "python", "import": "plug_all:twice"}]},
        {"middleware": [{"import": "plug_all:Stamp"}]},
        {"contextProviders": [{"type": "plug_all:Note"}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
async def test_an_import_path_over_the_wire_is_refused(host: FakeHost, spec: dict[str, Any]) -> None:
    refused = await host.refusal("createSession", {"agent": spec})

    assert refused.kind == "configInvalid"
    assert "only a configuration file" in refused.message
    assert "plug_all:" in refused.message


async def test_a_run_names_registered_middleware_only(host: FakeHost) -> None:
    session = await host.create_session()

    async def told(entry: dict[str, Any]) -> str:
        refused = await host.refusal("run", {"sessionId": session.id, "input": "hi", "middleware": [entry]})
        assert refused.kind == "configInvalid"
        return refused.message

    assert "only a configuration file" in await told({"import": "plug_all:Stamp"})
    assert "did you mean 'Stamp'?" in await told({"name": "stmp"})
    await session.run("hi", middleware=[{"name": "Stamp"}])
    assert (await session.state())["state"]["stamped"] is True


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('[endpoints.e]\ntype = "opnai"', "did you mean 'openai'?"),
        ('[endpoints.e]\ntype = "a:B"\nbase_url = "http://x"', "base_url: not for a plug-in"),
        ("[endpoints.e]\nconfig = { a = 1 }", "config is for plug-ins, not for the type 'openai'"),
        ('[[agents.a.middleware]]\nimport_ = "a:b"', "unknown key"),
        ('[[agents.a.middleware]]\nimprot = "a:b"', "did you mean 'import'?"),
        ('[[agents.a.middleware]]\nimport = "a:b"\nname = "b"', "give either name or import"),
        ("[[agents.a.middleware]]\nimport = 3", "agents.a.middleware[0].import: must be text"),
    ],
)
async def test_a_configuration_that_cannot_be_is_refused_with_its_key(
    start_host: Callable[..., Any], tmp_path: Path, toml: str, message: str
) -> None:
    config = tmp_path / "sidecar.toml"
    config.write_text(toml)
    host = await start_host(args=("--config", str(config)))

    refused = await host.refusal("createSession", {})

    assert refused.kind == "configInvalid"
    assert message in refused.message


# ---- agents ----------------------------------------------------------------------------------------------------------


async def test_an_agent_in_code_has_history_providers_and_middleware_around_it(host: FakeHost) -> None:
    session = await host.create_session(agent="coded")

    run = session.start("one")
    first = await run.result()
    second = await session.run("two")

    assert first["text"] == run.text() == "1 Be kind.\na note"
    assert second["text"] == "3 Be kind.\na note"
    assert (await session.state())["state"] == {"note": {"heard": second["text"]}, "stamped": True}
    assert [role for role, _ in await session.history()] == ["user", "assistant"] * 2
    phases = [
        event["data"]["phase"] for event in run.events("provider.completed") if event["data"]["sourceId"] == "note"
    ]
    assert phases == ["beforeRun", "afterRun"]


async def test_a_cancelled_agent_answers_with_the_text_that_it_had_said(host: FakeHost) -> None:
    session = await host.create_session(agent="coded")
    run = session.start("wait")
    await run.text_contains("a note")

    await session.cancel()

    result = await run.result()
    assert (result["status"], result["text"]) == ("cancelled", "1 Be kind.\na note")
    assert result["messages"][-1]["partial"] is True
    assert (await session.run("go on"))["text"].startswith("2 ")


@pytest.mark.parametrize(("text", "why"), [("fail", "ValueError"), ("exit", "SystemExit")])
async def test_a_failing_agent_fails_its_run_only(host: FakeHost, text: str, why: str) -> None:
    session = await host.create_session(agent="coded")

    refused = await host.refusal("run", {"sessionId": session.id, "input": text})

    assert (refused.kind, refused.message) == ("agentFailed", f"agent 'coded' failed: {why}")
    assert b"secret" not in host.stderr
    assert (await session.run("hi"))["text"].startswith("1 ")


async def test_an_agent_in_code_may_be_another_agent_s_tool(host: FakeHost, tmp_path: Path) -> None:
    script = tmp_path / "boss.toml"
    script.write_text(
        '[[reply]]\ncalls = [{ name = "coded", arguments = { task = "look" } }]\n[[reply]]\ntext = "He says: {result}"'
    )
    session = await host.create_session(
        agent={"model": f"scripted:{script}", "tools": [{"type": "agent", "agent": "coded"}]}
    )

    result = await session.run("go")

    assert result["text"] == "He says: 1 Be kind.\na note"


# ---- what a bad one does not do --------------------------------------------------------------------------------------


async def test_a_client_that_blocks_holds_up_neither_others_nor_the_end(host: FakeHost) -> None:
    slow = await host.create_session(model="slow:m")
    blocked = slow.start("hi")
    await blocked.event("run.started")

    assert (await (await host.create_session(model="scripted:echo")).run("hi"))["text"] == "hi"
    await slow.cancel()
    assert (await blocked.result())["status"] == "cancelled"
    host.hang_up()
    assert await asyncio.wait_for(host.wait(), 10) == 0


@pytest.mark.parametrize(
    ("code", "message"),
    [("1 / 0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit"), ("x = (", "SyntaxError")],
)
async def test_a_module_that_cannot_be_imported_is_told_with_its_place(
    start_host: Callable[..., Any], config: Path, code: str, message: str
) -> None:
    (config.parent / "plugins" / "plug_all.py").write_text(code)
    host = await start_host(args=("--config", str(config)))

    refusals = [
        await host.refusal("createSession", {"agent": "coded"}),
        await host.refusal("createSession", {"agent": {"tools": [{"type": "registered", "name": "twice"}]}}),
        await host.refusal("run", {"agent": {"model": "mine:m"}, "input": "hi"}),
    ]

    for refused in refusals:
        assert refused.kind == "configInvalid"
        assert message in refused.message
        assert "plug_all.py, line 1" in refused.message
    assert (await (await host.create_session()).run("hi"))["text"] == "hi"


def test_the_bench_leaves_no_plug_in_behind() -> None:
    assert not [name for name in sys.modules if name.startswith("plug_all")]
