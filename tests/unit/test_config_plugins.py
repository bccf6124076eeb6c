"""Plug-ins are found where a configuration says, hide nothing, and fail with words that lead to the fault."""

import grp
import importlib.metadata
import importlib.util
import os
import pwd
import py_compile
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from protocol.agents import AgentSpec, ProviderEntry
from protocol.tools import PythonTool
from providers import import_thread, plugins
from providers.plugins import PluginError, imported, load_installed
from sidecar.agents import provider_types as types
from sidecar.agents.catalog import ResolvedAgent
from sidecar.config.endpoints import EndpointConfig
from sidecar.config.load import load
from sidecar.config.show import show
from sidecar.errors import ConfigInvalid
from tests.bench.plugin_files import clean_imports
from tests.bench.plugin_files import install as install_in

PROVIDER = """
from providers.api.provider import ContextProvider
class P(ContextProvider):
    '''Does a thing.

    And more.
    '''
"""

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    with clean_imports():
        yield


@pytest.fixture
def plugin(tmp_path: Path) -> Write:
    def write(name: str, text: str, folder: str = "plugins") -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_a_class_is_imported_by_its_path(plugin: Write) -> None:
    folder = plugin("plug_a.py", PROVIDER).parent

    kind = imported("plug_a:P", [folder])

    assert kind.factory.__name__ == "P"
    assert kind.description == "Does a thing."
    assert kind.plugin == "plug_a:P"


def test_a_class_in_a_package_may_use_what_lies_beside_it(plugin: Write) -> None:
    plugin("plug_pack/__init__.py", "")
    plugin("plug_pack/other.py", "NAME = 'beside'")
    plugin("plug_pack/main.py", "from .other import NAME\nimport plug_beside\n" + PROVIDER)
    folder = plugin("plug_beside.py", "").parent

    assert imported("plug_pack.main:P", [folder]).factory.__module__ == "plug_pack.main"


def test_the_folder_stands_last_so_that_nothing_in_it_hides_another_module(plugin: Write) -> None:
    folder = plugin("json.py", "raise RuntimeError").parent
    plugin("plug_json.py", "import json\njson.dumps({})\n" + PROVIDER)

    imported("plug_json:P", [folder])
    imported("plug_json:P", [folder])

    assert sys.path[-1] == str(folder)
    assert sys.path.count(str(folder)) == 1


def test_bytecode_is_neither_read_nor_written(plugin: Write) -> None:
    source = plugin("plug_b.py", "raise SystemError".ljust(len(PROVIDER)))
    cached = Path(importlib.util.cache_from_source(str(source)))
    status = source.stat()
    py_compile.compile(str(source), str(cached))
    source.write_text(PROVIDER)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    written = cached.read_bytes()
    plugin("plug_sourceless.py", PROVIDER)
    py_compile.compile(str(source.parent / "plug_sourceless.py"), str(source.parent / "plug_sourceless.pyc"))
    (source.parent / "plug_sourceless.py").unlink()

    assert imported("plug_b:P", [source.parent]).factory.__name__ == "P"
    assert cached.read_bytes() == written
    with pytest.raises(PluginError, match="No module named 'plug_sourceless'"):
        imported("plug_sourceless:P", [source.parent])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import plug_nowhere", "ModuleNotFoundError: No module named 'plug_nowhere' in {file}, line 1"),
        ("from os import no_such_name", "ImportError: cannot import name 'no_such_name'"),
        ("\nx = 1 / 0", "cannot be imported: ZeroDivisionError in {file}, line 2"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit in {file}, line 1"),
        ("x = (", "SyntaxError in {file}, line 1"),
        ("x = '\\ud800'\nP = 3", "'plug_bad:P' in {file} is no class, but a int"),
        ("class P: pass", "is no subclass of providers.api.provider.ContextProvider"),
        ("Q = 1", "{file} has no 'P'"),
        (PROVIDER + "    config_type = dict", "config_type is no subclass of ProviderConfig"),
    ],
)
def test_a_broken_plug_in_says_what_and_where(text: str, message: str, plugin: Write) -> None:
    file = plugin("plug_bad.py", text)

    with pytest.raises(PluginError) as broken:
        imported("plug_bad:P", [file.parent])

    assert "plug_bad:P" in str(broken.value)
    assert message.format(file=file) in str(broken.value)
    assert "secret" not in str(broken.value)


def test_the_text_of_a_plug_ins_own_exception_is_not_repeated(plugin: Write) -> None:
    folder = plugin("plug_talks.py", "raise ValueError('secret')").parent

    with pytest.raises(PluginError) as broken:
        imported("plug_talks:P", [folder])

    assert "secret" not in str(broken.value)


@pytest.mark.parametrize("name", ["plug:", ":P", "plug-in:P", "plug:P.Q", "a..b:P", "plug:P:Q"])
def test_what_is_no_import_path_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="must be module:name"):
        imported(name, [])


def test_a_mended_plug_in_is_imported_the_next_time(plugin: Write) -> None:
    folder = plugin("plug_mended.py", "1 / 0").parent
    with pytest.raises(PluginError):
        imported("plug_mended:P", [folder])
    plugin("plug_mended.py", PROVIDER)

    assert imported("plug_mended:P", [folder]).factory.__name__ == "P"


def test_a_folder_that_others_may_write_to_is_refused(plugin: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_is_own_group", lambda gid: False)
    folder = plugin("plug_open.py", PROVIDER).parent
    for permissions in (0o770, 0o707):
        folder.chmod(permissions)
        with pytest.raises(PluginError, match="other users may write"):
            imported("plug_open:P", [folder])


def test_a_folder_that_only_the_user_s_own_group_may_write_to_is_nobody_else_s(
    plugin: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems that give each user a group make folders so, with their umask of 002."""
    folder = plugin("plug_group.py", PROVIDER).parent
    folder.chmod(0o770)
    user = pwd.getpwuid(os.getuid())
    members: list[str] = []
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=user.pw_name, gr_mem=members))
    os.chown(folder, -1, user.pw_gid)

    assert imported("plug_group:P", [folder]).factory.__name__ == "P"
    members.append("somebody")
    with pytest.raises(PluginError, match="other users may write"):
        imported("plug_group:P", [folder])


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PluginError, match="No such file"):
        imported("plug_x:P", [tmp_path / "gone"])
    with pytest.raises(PluginError, match="is no folder"):
        imported("plug_x:P", [tmp_path / "file"])


def test_two_projects_never_get_each_others_module(plugin: Write) -> None:
    one = plugin("plug_same.py", PROVIDER, "one").parent
    two = plugin("plug_same.py", PROVIDER, "two").parent
    imported("plug_same:P", [one])

    with pytest.raises(PluginError, match=f"imported for another configuration, from {one}"):
        imported("plug_same:P", [two])


# ---- what a session's entries may name ----------------------------------------------------------------------------


def configured(kind: str) -> ResolvedAgent:
    return ResolvedAgent("coder", AgentSpec(context_providers=(ProviderEntry(type=kind),)))


async def test_only_a_configured_agent_may_name_an_import_path(plugin: Write) -> None:
    folder = plugin("plug_w.py", PROVIDER).parent
    entry = ProviderEntry(type="plug_w:P")
    inline = ResolvedAgent("inline", AgentSpec(context_providers=(entry,)), is_inline=True)

    assert set(await types.provider_types(configured("plug_w:P"), (), [folder], None)) == {"plug_w:P"}
    for agent, sessions in ((inline, ()), (configured("plug_w:P"), (entry,))):
        with pytest.raises(ConfigInvalid, match="only a configuration file"):
            await types.provider_types(agent, sessions, [folder], None)


async def test_a_broken_plug_in_is_refused_with_the_file_that_names_it(plugin: Write) -> None:
    folder = plugin("plug_r.py", "1 / 0").parent

    with pytest.raises(ConfigInvalid, match="agent 'coder': provider type 'plug_r:P' cannot be imported") as refused:
        await types.provider_types(configured("plug_r:P"), (), [folder], "/p/sidecar.toml")

    assert (refused.value.fields["file"], refused.value.fields["key"]) == (
        "/p/sidecar.toml",
        "agents.coder.context_providers",
    )


async def test_an_import_that_does_not_end_is_given_up(plugin: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_thread, "IMPORT_S", 0.05)
    folder = plugin("plug_slow.py", "import threading\nthreading.Event().wait(5)").parent

    with pytest.raises(ConfigInvalid, match="still being imported"):
        await types.provider_types(configured("plug_slow:P"), (), [folder], None)


def install(tmp_path: Path, entry_points: str) -> None:
    """A package as pip would leave it."""
    info = tmp_path / "site" / "plug_dist-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_sidecar.providers]\n{entry_points}\n")
    (tmp_path / "site" / "plug_site.py").write_text(PROVIDER)
    sys.path.append(str(tmp_path / "site"))
    plugins.installed.cache_clear()


async def test_an_installed_package_adds_a_type_also_for_the_wire(tmp_path: Path) -> None:
    install(tmp_path, "thing = plug_site:P\nbroken = plug_site:Nothing\nhistory = plug_site:P")
    entry = ProviderEntry(type="thing")

    found = await types.provider_types(ResolvedAgent("a", AgentSpec()), (entry,), (), None)

    assert found["thing"].factory.__name__ == "P"
    assert list(await types.installed_types()) == ["thing"]
    with pytest.raises(ConfigInvalid, match=r"broken \(plug_site:Nothing, plug-dist\)") as refused:
        await types.provider_types(configured("broken"), (), (), None)
    assert "AttributeError" in refused.value.message


async def test_an_unknown_type_is_left_for_who_refuses_it(tmp_path: Path) -> None:
    assert await types.provider_types(configured("no_such_type"), (), (), None) == {}


async def test_known_types_need_no_look_at_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: pytest.fail("looked"))

    assert await types.provider_types(configured("history"), (ProviderEntry(type="instructions"),), (), None) == {}


def test_an_entry_point_that_exits_is_an_error(tmp_path: Path) -> None:
    install(tmp_path, "thing = plug_exits:P")
    (tmp_path / "site" / "plug_exits.py").write_text("raise SystemExit")

    with pytest.raises(PluginError, match="SystemExit"):
        load_installed(plugins.installed()["thing"])


# ---- the key `import`, which is no name of a field ------------------------------------------------------------------

IMPORTS = """
plugins = ["plugins"]
[agents.a]
tools = [{ type = "python", import = "plug_x:tool" }]
middleware = [{ import = "plug_x:mw", config = { import = 1 } }]
"""


def test_a_file_says_import_and_is_shown_so(tmp_path: Path) -> None:
    file = tmp_path / "sidecar.toml"
    file.write_text(IMPORTS)

    loaded = load(config_file=file, environ={}, store="memory", log_level=None)

    agent = loaded.config.agents["a"]
    assert [entry.import_ for entry in agent.tools or () if isinstance(entry, PythonTool)] == ["plug_x:tool"]
    assert [(entry.import_, entry.config) for entry in agent.middleware or ()] == [("plug_x:mw", {"import": 1})]
    assert 'import = "plug_x:mw", config = { import = 1 }' in show(loaded)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('{ improt = "a:b" }', "agents.a.middleware[0].improt: unknown key; did you mean 'import'?"),
        ('{ import_ = "a:b" }', "unknown key"),
        ("{ import = 3 }", "agents.a.middleware[0].import: must be text"),
        ('{ import = "a:b", name = "b" }', "give either name or import"),
        ("3", "agents.a.middleware[0]: must be a table"),
    ],
)
def test_a_wrong_entry_is_told_in_the_words_of_the_file(tmp_path: Path, entry: str, message: str) -> None:
    file = tmp_path / "sidecar.toml"
    file.write_text(f"[agents.a]\nmiddleware = [{entry}]")

    with pytest.raises(ConfigInvalid) as refused:
        load(config_file=file, environ={}, store="memory", log_level=None)

    assert message in refused.value.message


# ---- endpoints -------------------------------------------------------------------------------------------------------


def endpoint(tmp_path: Path, text: str) -> EndpointConfig:
    file = tmp_path / "sidecar.toml"
    file.write_text(f"[endpoints.e]\n{text}")
    return load(config_file=file, environ={}, store="memory", log_level=None).config.endpoints["e"]


def test_an_endpoint_may_be_a_plug_in_s(tmp_path: Path) -> None:
    made = endpoint(tmp_path, 'type = "plug_x:Client"\nconfig = { key = 1 }\nidle_timeout_ms = 5\ncontext_size = 9')

    assert made.is_plugin
    assert made.config == {"key": 1}
    assert not endpoint(tmp_path, 'type = "scripted"').is_plugin


def test_an_installed_client_is_a_type_like_any_other(tmp_path: Path) -> None:
    install_in(tmp_path / "site", {}, chat_clients="house = plug_x:Client")
    sys.path.append(str(tmp_path / "site"))
    plugins.installed.cache_clear()

    assert endpoint(tmp_path, 'type = "house"').is_plugin
    with pytest.raises(ConfigInvalid, match=r"must be 'openai', .*'house' or module:Class; did you mean 'house'\?"):
        endpoint(tmp_path, 'type = "hous"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type = "opnai"', "e.type: must be 'openai', 'openai_responses', 'embedded', 'scripted' or module:Class; did"),
        ('type = "a:B"\nbase_url = "http://x"\nmax_retries = 1', "base_url, max_retries: not for a plug-in"),
        ("config = { a = 1 }", "config is for plug-ins, not for the type 'openai'"),
    ],
)
def test_keys_that_would_do_nothing_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        endpoint(tmp_path, text)

    assert message in refused.value.message


def test_a_plug_in_s_password_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "sidecar.toml"
    file.write_text('[endpoints.e]\ntype = "a:B"\nconfig = { api_key = "hidden", word = "shown" }')

    shown = show(load(config_file=file, environ={}, store="memory", log_level=None))

    assert "hidden" not in shown
    assert "shown" in shown
