"""The configuration over the wire: the project's file of each session, trust, reloading, plug-ins."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sidecar.config.project import trust_project
from tests.bench.host import FakeHost, RpcError
from tests.e2e.cli_process import Cli

PLUGIN = """
from protocol.messages import Message
from providers.api.provider import ContextProvider, ProviderConfig
print("noise at import")
class Config(ProviderConfig):
    text: str = "from the plug-in"
class P(ContextProvider):
    config_type = Config
    async def before_run(self, *, agent, session, context, state):
        context.extend_messages(self, [Message(role="user", content=self.config.text)])
"""

AGENT = """
plugins = ["plugins"]
[agents.p]
model = "scripted:echo"
[[agents.p.context_providers]]
type = "plug:P"
source_id = "mine"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own: for the sidecars that are started, and for `trust_project` here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def repository(home: Path) -> Path:
    root = home / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "sub").mkdir()
    return root


def users(home: Path, text: str) -> Path:
    file = home / "config" / "agent-sidecar" / "sidecar.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def plugin(repository: Path, text: str = PLUGIN, name: str = "plug.py") -> Path:
    file = repository / "plugins" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


async def agents(host: FakeHost) -> list[str]:
    return [item["name"] for item in (await host.request("listAgents"))["items"]]


# ---- the project's file -------------------------------------------------------------------------------------------


async def test_an_untrusted_project_adds_an_agent_and_warns_of_the_rest(start_host: Any, repository: Path) -> None:
    (repository / "sidecar.toml").write_text(
        'default_agent = "evil"\n[agents.helper]\ninstructions = "Help."\nmodel = "scripted:evil"'
    )
    host = await start_host()

    session = await host.create_session(cwd=str(repository / "sub"), agent="helper", model="scripted:echo")
    other = await host.create_session(model="scripted:echo")

    (warning,) = session.opened["warnings"]
    assert warning["kind"] == "configIgnored"
    assert "default_agent, agents.helper.model" in warning["message"]
    assert f"agent-sidecar trust {repository}" in warning["message"]
    assert (await session.run("hi"))["text"] == "hi"
    assert "warnings" not in other.opened
    assert (await host.refusal("createSession", {"agent": "helper"})).kind == "agentNotFound"
    await host.request("shutdown")
    host.notify("exit")
    await host.wait()
    assert warning["message"] in host.stderr.decode()


async def test_a_trusted_project_configures_its_own_sessions_and_no_others(
    start_host: Any, home: Path, repository: Path
) -> None:
    users(home, 'default_model = "scripted:users"')
    (repository / "sidecar.toml").write_text(
        'default_agent = "coder"\ndefault_model = "scripted:echo"\n[agents.coder]\n[store]\nkeep_event_runs = 3'
    )
    trust_project(repository / "sidecar.toml")
    host = await start_host()

    inside = await host.create_session(cwd=str(repository))
    outside = await host.create_session()

    assert inside.opened["session"]["agent"] == "coder"
    assert (await inside.run("hi"))["text"] == "hi"
    assert "ignored store" in inside.opened["warnings"][0]["message"]
    assert outside.opened["session"]["agent"] == "default"
    assert inside.opened["configOptions"][0]["choices"][0]["value"] == "scripted:echo"


async def test_a_trusted_project_that_is_wrong_hurts_its_own_sessions_only(start_host: Any, repository: Path) -> None:
    file = repository / "sidecar.toml"
    file.write_text("\n[limits]\nmax_turn = 3")
    trust_project(file)
    host = await start_host()

    refused = await host.refusal("createSession", {"cwd": str(repository), "model": "scripted:echo"})

    assert (refused.kind, refused.data["file"], refused.data["line"]) == ("configInvalid", str(file), 3)
    assert (await (await host.create_session(model="scripted:echo")).run("hi"))["text"] == "hi"


async def test_the_process_takes_its_store_from_the_trusted_project_that_it_starts_in(
    home: Path, repository: Path
) -> None:
    (repository / "sidecar.toml").write_text(
        '[store]\npath = "sqlite:sessions.db"\n[agents.default]\nmodel = "scripted:echo"'
    )
    cli = Cli(repository)
    ours = {"XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data")}
    assert (await cli("run", "hi", "--model", "scripted:echo", **ours)).out == "hi\n"
    assert not (repository / "sessions.db").exists()

    trust_project(repository / "sidecar.toml")

    assert (await cli("run", "hi", "--session", "s", **ours)).out == "hi\n"
    assert (repository / "sessions.db").exists()


async def test_many_broken_projects_at_once_break_nothing(start_host: Any, home: Path) -> None:
    host = await start_host()
    asked = []
    for number in range(100):
        folder = home / f"p{number}"
        folder.mkdir()
        (folder / "sidecar.toml").write_text("= broken" if number % 2 else f"[agents.a{number}]")
        asked.append(host.ask("createSession", {"cwd": str(folder), "model": "scripted:echo"}))

    results = await asyncio.gather(*(each.result() for each in asked))

    assert [bool(result.get("warnings")) for result in results] == [bool(number % 2) for number in range(100)]


# ---- trust --------------------------------------------------------------------------------------------------------


async def test_a_host_passes_trust_on_and_withdraws_it(start_host: Any, repository: Path) -> None:
    (repository / "sidecar.toml").write_text('[agents.coder]\nmodel = "scripted:echo"')
    host = await start_host(cwd=repository)
    untrusted = await host.create_session(agent="coder")
    assert "model" not in untrusted.opened["session"]

    assert await host.request("trustFolder", {"path": str(repository / "sub"), "trusted": True}) == {}
    trusted = await host.create_session(agent="coder")
    assert "warnings" not in trusted.opened
    assert (await trusted.run("hi"))["text"] == "hi"

    await host.request("trustFolder", {"path": str(repository), "trusted": False})
    assert "warnings" in (await host.create_session(agent="coder")).opened
    assert (await trusted.run("again"))["text"] == "again"


async def test_trust_ends_with_a_change(start_host: Any, repository: Path) -> None:
    file = repository / "sidecar.toml"
    file.write_text('[agents.coder]\nmodel = "scripted:echo"')
    host = await start_host()
    await host.request("trustFolder", {"path": str(repository), "trusted": True})
    file.write_text('[agents.coder]\nmodel = "scripted:evil"')

    session = await host.create_session(cwd=str(repository), agent="coder", model="scripted:echo")

    assert "changed since it was trusted" in session.opened["warnings"][0]["message"]


async def test_trust_needs_an_absolute_path_and_a_folder_without_a_file_is_no_error(
    start_host: Any, repository: Path
) -> None:
    host = await start_host()
    for path in ("relative", ""):
        refused = await host.refusal("trustFolder", {"path": path, "trusted": True})
        assert refused.kind == "invalidParams", path

    assert await host.request("trustFolder", {"path": str(repository), "trusted": True}) == {}
    assert await host.request("trustFolder", {"path": str(repository / "gone"), "trusted": False}) == {}


async def test_the_command_trusts_lists_and_withdraws(repository: Path) -> None:
    cli = Cli(repository)
    nothing = await cli("trust", ".")
    assert (nothing.code, "nothing to trust" in nothing.err) == (1, True)
    (repository / "sidecar.toml").write_text('plugins = ["plugins"]')
    plugin(repository)
    assert "agent-sidecar trust" in (await cli("config", "check")).out

    trusted = await cli("trust", "sub")

    assert trusted.out == f"trusted: {repository}/sidecar.toml and what it brings in (1); a change asks again\n"
    assert (await cli("trust", "--list")).out == f"{repository}/sidecar.toml\n"
    assert "warning" not in (await cli("config", "check")).out
    assert (await cli("trust", "--remove", ".")).out == "no longer trusted: 1 file\n"
    assert (await cli("trust", "--list")).out == ""
    assert (await cli("trust")).code == 2
    assert (await cli("trust", "nowhere")).code == 2


# ---- reloading ----------------------------------------------------------------------------------------------------


async def test_new_sessions_and_resumed_ones_take_up_what_is_read_again(start_host: Any, home: Path) -> None:
    file = users(home, '[agents.a]\ninstructions = "one"\nmodel = "scripted:echo"')
    host = await start_host()
    session = await host.create_session(agent="a")
    file.write_text('[agents.a]\nmodel = "scripted:echo"\nmax_turns = 3\n[agents.b]\n[limits]\npage_max = 500')

    result = await host.request("reloadConfig")

    assert result["agents"] == 3
    assert [(warning["kind"], "limits.page_max" in warning["message"]) for warning in result["warnings"]] == [
        ("restartNeeded", True)
    ]
    assert await agents(host) == ["default", "a", "b"]
    updated = [message["params"] for message in host.messages if message.get("method") == "config/updated"]
    assert [update["agents"] for update in updated] == [["default", "a", "b"]]
    assert (await host.create_session(agent="b", model="scripted:echo")).opened["session"]["agent"] == "b"
    assert (await session.run("hi"))["text"] == "hi"
    file.write_text("")
    await host.request("reloadConfig")
    assert (await session.run("still here"))["text"] == "still here"
    with pytest.raises(RpcError) as gone:
        await host.resume_session(session.id)
    assert gone.value.kind == "agentNotFound"


async def test_a_broken_file_keeps_what_there_was(start_host: Any, home: Path) -> None:
    file = users(home, "[agents.a]")
    host = await start_host()
    assert await agents(host) == ["default", "a"]
    file.write_text("\nnonsense = 1")

    refused = await host.refusal("reloadConfig")

    assert (refused.kind, refused.data["file"], refused.data["line"]) == ("configInvalid", str(file), 2)
    assert await agents(host) == ["default", "a"]


async def test_a_sidecar_that_started_with_a_broken_file_recovers(start_host: Any, home: Path) -> None:
    file = users(home, "nonsense = 1")
    host = await start_host()
    assert (await host.refusal("listAgents")).kind == "configInvalid"
    assert (await host.refusal("reloadConfig")).kind == "configInvalid"
    file.write_text('[agents.default]\nmodel = "scripted:echo"')

    await host.request("reloadConfig")

    assert (await (await host.create_session()).run("hi"))["text"] == "hi"


async def test_an_editor_that_says_its_configuration_changed_has_it_read_again(start_host: Any, home: Path) -> None:
    file = users(home, "[agents.a]")
    host = await start_host()
    assert await agents(host) == ["default", "a"]
    file.write_text("[agents.b]")

    for _ in range(50):
        host.notify("workspace/didChangeConfiguration", {"settings": None})

    await host.until(lambda: [m for m in host.messages if m.get("method") == "config/updated"])
    assert await agents(host) == ["default", "b"]
    new = file.with_name("new.toml")  # at once: it may still be read for one of the fifty, and empty it is valid
    new.write_text("nonsense = 1")
    new.replace(file)
    host.notify("workspace/didChangeConfiguration", {"settings": {"anything": 1}})
    assert await agents(host) == ["default", "b"]


async def test_settings_of_the_host_still_count_after_a_reload(start_host: Any, home: Path) -> None:
    block = {"protocolVersions": [1], "config": {"agents": {"h": {"description": "d"}}, "limits": {"maxTurns": 1}}}
    host = await start_host(initialize={"initializationOptions": {"sidecar": block}})

    await host.request("reloadConfig")

    assert await agents(host) == ["default", "h"]
    session = await host.create_session(model="scripted:echo")
    assert "initializationOptions.sidecar.config: ignored limits" in session.opened["warnings"][0]["message"]


# ---- plug-ins -----------------------------------------------------------------------------------------------------


async def test_a_plug_in_of_a_trusted_project_takes_part_in_runs(start_host: Any, repository: Path) -> None:
    plugin(repository)
    (repository / "sidecar.toml").write_text(AGENT)
    host = await start_host()
    cwd = str(repository)
    untrusted = await host.create_session(cwd=cwd, agent="p", model="scripted:echo")
    assert [provider["sourceId"] for provider in untrusted.opened["providers"]] == ["in_memory"]
    await host.request("trustFolder", {"path": cwd, "trusted": True})

    session = await host.create_session(cwd=cwd, agent="p")
    result = await session.run("hi")

    assert [provider["sourceId"] for provider in session.opened["providers"]] == ["in_memory", "mine"]
    completed = [event["data"] for event in session.events("provider.completed") if event["data"]["sourceId"] == "mine"]
    assert (completed[0]["type"], completed[0]["added"]["messages"]) == ("plug:P", 1)
    assert result["status"] == "completed"
    await host.request("shutdown")
    host.notify("exit")
    await host.wait()
    assert b"noise at import" in host.stderr


async def test_an_import_path_over_the_wire_is_refused(start_host: Any, home: Path) -> None:
    folder = home / "mine"
    plugin(folder.parent, name="plug.py")
    users(home, 'plugins = ["../../plugins"]')
    host = await start_host()
    entry = {"type": "plug:P"}

    for params in ({"contextProviders": [entry]}, {"agent": {"contextProviders": [entry]}}):
        refused = await host.refusal("createSession", {**params, "model": "scripted:echo"})
        assert refused.kind == "configInvalid"
        assert "only a configuration file" in refused.message
    one_off = await host.refusal("run", {"input": "hi", "agent": {"contextProviders": [entry]}})
    assert "only a configuration file" in one_off.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("P = print", "is no class"),
        ("class P: pass", "no subclass"),
        ("raise KeyError('secret')", "KeyError"),
        (PLUGIN + "    def __init__(self, *a): raise KeyError('secret')", "cannot be made: KeyError"),
    ],
)
async def test_a_broken_plug_in_is_named_and_hurts_nobody_else(
    text: str, message: str, start_host: Any, home: Path
) -> None:
    file = users(home, AGENT)
    plugin(file.parent, text)
    host = await start_host()

    refused = await host.refusal("createSession", {"agent": "p"})

    assert refused.kind == "configInvalid"
    assert "plug:P" in refused.message
    assert message in refused.message
    assert "secret" not in refused.message
    assert (await (await host.create_session(model="scripted:echo")).run("hi"))["text"] == "hi"
