"""The way out of the process: whatever code of others does, the answers go out and the exit code is the usual one."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import FakeHost, RpcError
from tests.bench.plugin_files import write_plugin
from tests.bench.tool_plugins import tool_plugins
from tests.bench.wanted_calls import told, wants

PROVIDERS = """
import asyncio
import sys
import time
from pathlib import Path

from providers.api.provider import ContextProvider, ProviderConfig

LEFT = Path(__file__).with_name("left.log")


class Config(ProviderConfig):
    pass


class Quiet(ContextProvider):
    config_type = Config

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        LEFT.open("a").write("left\\n")


class Exits(Quiet):
    async def __aexit__(self, *error):
        sys.exit(7)


class Cancels(Quiet):
    async def __aexit__(self, *error):
        raise asyncio.CancelledError


class ExitsAtOnce(Quiet):
    async def __aenter__(self):
        sys.exit(7)
"""
FORKING = """
import multiprocessing


@tool
def terminated() -> str:
    '''End a process that is at work.'''
    reader, writer = multiprocessing.Pipe()
    process = multiprocessing.Process(target=lambda: (writer.send(1), time.sleep(60)))
    process.start()
    reader.recv()
    process.terminate()
    process.join(5)
    code = process.exitcode
    process.kill()
    return str(code)


@tool
def child() -> str:
    '''Leave a process behind.'''
    process = multiprocessing.Process(target=time.sleep, args=(60,), daemon=False)
    process.start()
    effect(str(process.pid))
    return "begun"


@tool
def close_stdout() -> str:
    '''Close what is not its own.'''
    sys.stdout.close()
    return "closed"
"""


def configured(folder: Path) -> tuple[str, ...]:
    """Arguments for a sidecar that has an agent of each of these providers."""
    write_plugin(folder / "plugins", "plug_out", PROVIDERS)
    config = folder / "sidecar.toml"
    agents = (
        f'[agents.{kind}]\nmodel = "scripted:echo"\ncontext_providers = [{{ type = "plug_out:{kind}" }}]\n'
        for kind in ("Quiet", "Exits", "Cancels", "ExitsAtOnce")
    )
    config.write_text('plugins = ["plugins"]\n' + "".join(agents))
    return ("--config", str(config))


@pytest.mark.parametrize("kind", ["Exits", "Cancels"])
async def test_a_provider_that_cannot_be_left_spoils_neither_the_end_nor_the_others(
    start_host: Any, store: str, tmp_path: Path, kind: str
) -> None:
    host: FakeHost = await start_host(store=store, args=configured(tmp_path))
    for provider in (kind, "Quiet"):
        assert (await (await host.create_session(agent=provider)).run("hello"))["text"] == "hello"

    host.hang_up()

    assert await host.wait() == 0
    assert (tmp_path / "plugins" / "left.log").read_text() == "left\n"
    assert os.listdir(f"{store.removeprefix('sqlite:')}.owners") == []


async def test_a_provider_that_exits_when_it_is_opened_fails_its_run(start_host: Any, tmp_path: Path) -> None:
    host: FakeHost = await start_host(args=configured(tmp_path))
    session = await host.create_session(agent="ExitsAtOnce")

    with pytest.raises(RpcError) as failed:
        await session.run("hello")

    assert (failed.value.kind, "SystemExit" in failed.value.message) == ("providerFailed", True)
    assert (await (await host.create_session(model="scripted:echo")).run("hello"))["text"] == "hello"


async def after_a_call(start_host: Any, model: FakeModel, folder: Path, tool: str) -> FakeHost:
    """A sidecar in which this tool was called."""
    plugins = tool_plugins(folder, module=FORKING, tools=(tool,))
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    wants(model, (tool, {}))
    model.says(T("fine"), F())
    assert (await (await host.create_session()).run("go"))["text"] == "fine"
    return host


async def test_a_tool_that_closes_stdout_spoils_no_exit_code(start_host: Any, model: FakeModel, tmp_path: Path) -> None:
    host = await after_a_call(start_host, model, tmp_path, "close_stdout")

    host.hang_up()

    assert await host.wait() == 0


async def test_a_process_that_a_tool_forks_ends_by_sigterm_as_any_process_does(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    await after_a_call(start_host, model, tmp_path, "terminated")

    assert told(model) == [("c0", "-15")]


async def test_a_process_that_a_tool_forks_does_not_keep_the_client_waiting_for_the_end(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    host = await after_a_call(start_host, model, tmp_path, "child")
    child = int((tmp_path / "plugins" / "effects.log").read_text())

    host.kill()
    try:
        await host.until_end()
    finally:
        os.kill(child, signal.SIGKILL)


# ---- the way in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False], ids=["fast", "slow"])
async def test_a_folder_that_is_gone_or_no_folder_s_name_keeps_nobody_from_starting(
    start_host: Any, tmp_path: Path, at_once: bool
) -> None:
    """Both ways to answer `initialize`: before the program is imported, and after."""
    folder = tmp_path / "gone"
    folder.mkdir()
    host: FakeHost = await start_host(cwd=folder, greet=False, fresh=True)
    folder.rmdir()
    params = {"rootUri": "file://[bad", "capabilities": {}}
    if not at_once:
        assert (await host.refusal("listSessions")).code == -32002

    assert "capabilities" in await host.request("initialize", params)
    assert (await host.request("listSessions"))["sessions"] == []


@pytest.mark.parametrize("option", ["--record", "--log-file"])
async def test_a_file_that_cannot_be_named_keeps_nobody_from_starting(start_host: Any, option: str) -> None:
    name = "r" * 300 if option == "--record" else "~nobody-of-this-name/log"
    host: FakeHost = await start_host(args=(option, name))

    assert (await host.request("listSessions"))["sessions"] == []
    host.hang_up()
    await asyncio.wait_for(host.wait(), 10)
    assert name in host.stderr.decode()
