"""A whole conversation by vscode-jsonrpc under Node, the library that VS Code's language clients are built on."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.editors.conftest import BEGINNING, LOOKS_UP, STALLS, Workspace, npm_version, steps

SCRIPT = Path(__file__).parent / "node" / "conversation.cjs"
MODULES = Path(sys.prefix) / "editors" / "node_modules"
"""Where `.ci/run` installs packages of Node."""


async def test_a_whole_conversation_by_vscode_jsonrpc(workspace: Workspace, record_property: Any) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    if not (MODULES / "vscode-jsonrpc").is_dir():
        pytest.skip(f"no vscode-jsonrpc in {MODULES}; .ci/run installs it")
    workspace.environment.update(NODE_PATH=str(MODULES), STALLS=STALLS, LOOKS_UP=LOOKS_UP)

    said = steps(await workspace.run(node, str(SCRIPT), *workspace.command))

    assert said["initialize"]["protocolVersion"] == 1
    assert "sidecar.run" in said["initialize"]["commands"]
    assert "schema" in said["getSchema"]
    assert said["unknownMethod"] == -32601
    assert said["createSession"] == "node"
    assert said["run"] == {"text": "You said: hello", "streamed": "You said: hello", "last": "run.completed"}
    asked = {"key": "饺子"}
    assert said["tool"] == {"text": "It says: 饺子 is 饺子", "asked": [["approve", asked], ["call", asked]]}
    assert said["getState"] == {"status": "running", "runId": "r2"}
    assert said["cancel"] == {"status": "cancelled", "text": BEGINNING}

    assert said["command"]["status"] == "cancelled"
    kinds = said["command"]["kinds"]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert set(kinds[1:-1]) == {"report"}
    assert said["messages"] == [{"type": 2, "message": f"{BEGINNING}\n(cancelled)"}]

    assert said["killed"] == "SIGKILL"
    assert said["resume"]["interrupted"] == ["r3"]
    assert said["resume"]["sameEvents"]
    assert said["resume"]["added"][-1] == ["run.completed", "interrupted"]
    assert said["goesOn"] == "You said: again"

    assert said["shutdown"] is None
    assert said["afterShutdown"] == -32600
    assert said["exit"] == 0
    assert said["unexpected"] == []
    note(record_property, "vscode-jsonrpc", npm_version(MODULES / "vscode-jsonrpc"))
