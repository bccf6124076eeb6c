"""Whole conversations with `agent-sidecar acp` by the TypeScript SDK and by acpx, as their users start them."""

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.bench.processes import gone
from tests.bench.waiting import eventually
from tests.editors.conftest import BEGINNING, STALLS, Workspace, npm_version, steps
from tests.editors.editor_settings import MODEL, PLUGIN

SCRIPT = Path(__file__).parent / "node" / "acp.mjs"
MODULES = Path(sys.prefix) / "editors" / "node_modules"
"""Where `.ci/run` installs packages of Node."""


@pytest.fixture
def agent(workspace: Workspace, tmp_path: Path) -> list[str]:
    """The command of an agent with a tool that needs consent."""
    config = Path(workspace.environment["XDG_CONFIG_HOME"]) / "agent-sidecar" / "sidecar.toml"
    (config.parent / "plugins").mkdir(mode=0o755)
    (config.parent / "plugins" / "acp_tools.py").write_text(PLUGIN)
    (tmp_path / "acp.toml").write_text(MODEL)
    config.write_text(
        f'plugins = ["plugins"]\ntools = ["acp_tools:remove"]\n{config.read_text()}'
        f'[agents.default]\nmodel = "scripted:{tmp_path / "acp.toml"}"\n'
        'tools = [{ type = "registered", name = "remove" }]\n'
    )
    workspace.environment["HOME"] = str(tmp_path)
    return [workspace.command[0], "acp"]


def node() -> str:
    """The program that runs JavaScript."""
    return shutil.which("node") or pytest.skip("no node here")


def package(name: str) -> Path:
    """The folder of a package."""
    folder = MODULES / name
    return folder if folder.is_dir() else pytest.skip(f"no {name} in {MODULES}; .ci/run installs it")


async def test_a_whole_conversation_by_the_typescript_sdk(
    workspace: Workspace, agent: list[str], record_property: Any
) -> None:
    sdk = package("@agentclientprotocol/sdk")
    main = json.loads((sdk / "package.json").read_text())["main"]

    said = steps(await workspace.run(node(), str(SCRIPT), str(sdk / main), *agent))

    assert said["initialize"] == 1
    assert said["prompt"] == {"reason": "end_turn", "text": "You said: hello"}
    assert said["permission"] == {"asked": ["delete"], "text": True}
    assert said["busy"] == "sessionBusy"
    assert said["cancelRequest"] == said["cancel"] == "cancelled"
    assert said["state"] == "idle"
    assert said["list"] == [True]
    assert said["load"] == {"user": f"helloremove it{STALLS}{STALLS}", "calls": 1}
    assert said["resume"] == "end_turn"
    assert said["deleted"] == 0
    assert said["exit"] == 0
    note(record_property, "ACP SDK, TypeScript", npm_version(sdk))


async def test_a_whole_conversation_by_acpx(workspace: Workspace, agent: list[str], record_property: Any) -> None:
    package_of_acpx = package("acpx")
    command = [node(), str(package_of_acpx / "dist" / "cli.js"), "--agent", " ".join(agent), "--format", "json"]
    acpx = [*command, "--approve-all"]

    (created,) = await workspace.run(*acpx, "sessions", "new")
    session = created["acpxSessionId"]
    spoken = await workspace.run(*acpx, "prompt", "hello")
    assert (text(spoken), ending(spoken)) == ("You said: hello", "end_turn")
    assert text(await workspace.run(*acpx, "prompt", "remove it")) == "removed a.txt"

    told = workspace.root.parent / "story.jsonl"
    with told.open("wb") as output:
        story = asyncio.create_task(workspace.run(*acpx, "prompt", STALLS, output=output))
        await eventually(lambda: " a time" in told.read_text(encoding="utf-8"))
        (state,) = await workspace.run(*acpx, "status")
        assert (state["status"], state["acpxSessionId"]) == ("alive", session)
        assert (await workspace.run(*acpx, "cancel"))[0]["cancelled"]
        await story
    cut = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    assert (text(cut), ending(cut)) == (BEGINNING, "cancelled")

    os.kill(state["pid"], signal.SIGTERM)  # what keeps the agent for the next prompts
    await gone(state["pid"])
    again = await workspace.run(*acpx, "prompt", "again")
    assert "session/resume" in [line.get("method") for line in again]
    assert (text(again), ending(again)) == ("You said: again", "end_turn")
    (history,) = await workspace.run(*acpx, "sessions", "history")
    assert [entry["textPreview"] for entry in history["entries"] if entry["role"] == "user"] == [
        "hello", "remove it", STALLS, "again",
    ]  # fmt: skip
    assert (await workspace.run(*acpx, "sessions", "close"))[0]["action"] == "session_closed"
    chosen = await workspace.run(*command, "exec", "--config-option", "reasoningEffort=high", "hello")
    settings = [option for line in chosen for option in line.get("result", {}).get("configOptions", [])]
    assert ("reasoningEffort", "high") in [(option["id"], option["currentValue"]) for option in settings]
    note(record_property, "acpx", npm_version(package_of_acpx))


def ending(said: list[dict[str, Any]]) -> str:
    """Why the turn ended."""
    return said[-1]["result"]["stopReason"]


def text(said: list[dict[str, Any]]) -> str:
    """What the agent said, of a client that shows every message."""
    updates = [line["params"]["update"] for line in said if line.get("method") == "session/update"]
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk")
