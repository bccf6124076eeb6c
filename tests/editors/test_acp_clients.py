"""Whole conversations with `agent-sidecar acp` by the TypeScript SDK and by acpx, as their users start them."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.conftest import STALLS, Workspace, steps

SCRIPT = Path(__file__).parent / "node" / "acp.mjs"
MODULES = Path(sys.prefix) / "editors" / "node_modules"
"""Where `.ci/run` installs packages of Node."""

MODEL = f"""
[[reply]]
when_tool = "remove"
text = "{{result}}"
[[reply]]
when = "remove"
calls = [{{ name = "remove", arguments = {{ path = "a.txt" }} }}]
[[reply]]
when = "{STALLS}"
text = ["Once upon", " a time"]
stall = true
[[reply]]
when = "."
text = ["You said: ", "{{input}}"]
"""
PLUGIN = '''
from providers.api.tool import tool


@tool(approval_mode="always_require", kind="delete")
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"
'''


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


async def test_a_whole_conversation_by_the_typescript_sdk(workspace: Workspace, agent: list[str]) -> None:
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


async def test_prompts_by_acpx(workspace: Workspace, agent: list[str]) -> None:
    acpx = [node(), str(package("acpx") / "dist" / "cli.js"), "--agent", " ".join(agent), "--format", "json"]

    spoken = await workspace.run(*acpx, "exec", "hello")
    assert text(spoken) == "You said: hello"
    assert spoken[-1]["result"]["stopReason"] == "end_turn"

    assert text(await workspace.run(*acpx, "--approve-all", "exec", "remove it")) == "removed a.txt"
    chosen = await workspace.run(*acpx, "exec", "--config-option", "reasoningEffort=high", "hello")
    settings = [option for line in chosen for option in line.get("result", {}).get("configOptions", [])]
    assert ("reasoningEffort", "high") in [(option["id"], option["currentValue"]) for option in settings]


def text(said: list[dict[str, Any]]) -> str:
    """What the agent said, of a client that shows every message."""
    updates = [line["params"]["update"] for line in said if line.get("method") == "session/update"]
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk")
