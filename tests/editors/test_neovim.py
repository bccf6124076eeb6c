"""A whole conversation by Neovim, with nothing but the settings that `docs/editors.md` shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.editors.conftest import Workspace, steps
from tests.editors.editor_settings import REMOVED, assert_replayed, blocks, prepare, seen_by_the_model

SCRIPT = Path(__file__).parent / "neovim" / "conversation.lua"


def program() -> str:
    """Neovim, as `.ci/run` installs it beside this Python, or another."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("nvim", path=path) or pytest.skip("no nvim here; .ci/run installs it")


def version() -> str:
    """Of Neovim, as it tells it."""
    told = subprocess.run([program(), "--version"], check=True, capture_output=True, text=True).stdout
    return told.splitlines()[0].removeprefix("NVIM v")


async def test_a_whole_conversation_by_neovim(workspace: Workspace, tmp_path: Path, record_property: Any) -> None:
    prepare(workspace)
    settings = _settings(tmp_path)
    notes = workspace.root / "notes.md"

    said = steps(await workspace.run(program(), "--clean", "--headless", "-l", str(SCRIPT), str(settings), str(notes)))

    assert said["attached"] == {"root": str(workspace.root), "encoding": "utf-8", "uri": notes.as_uri()}
    ((document),) = said["documents"]
    assert (document["uri"], document["languageId"]) == (notes.as_uri(), "markdown")
    assert document["version"] > 0
    assert said["message"] == {"type": 3, "message": "You said: hello there"}

    assert said["cancelled"]["status"] == "cancelled"
    assert said["cancelled"]["first"] == {"kind": "begin", "title": "agent-sidecar", "cancellable": True}
    assert said["cancelled"]["last"] == {"kind": "end", "title": "agent-sidecar", "message": "cancelled"}
    assert said["silent"]

    assert said["createSession"] == {"sessionId": "nvim", "cwd": str(workspace.root)}
    assert said["run"] == "You said: hello"
    assert said["events"] == {"first": "run.started", "last": "run.completed"}
    assert said["getState"] == ["server"]
    assert "\nunsaved\ntext more\n" in seen_by_the_model(said["explainRun"])
    assert said["question"]["prompt"].startswith('Run remove?\n{"path":"a.txt"}')
    assert said["question"]["items"][0] == "Allow once"
    assert said["allowed"] == REMOVED
    assert "rejected" in said["dismissed"]
    assert said["cancelRequest"] == "cancelled"

    assert_replayed(said)
    assert said["exit"] == said["exitAgain"] == 0
    echoed = ["".join(text for text, *_ in chunks) for chunks in said["echoed"]]
    assert echoed
    assert not [text for text in echoed if "rror" in text]
    assert not [line for line in said["log"] if line.startswith(("[ERROR]", "[WARN]"))]
    note(record_property, "Neovim", version())


async def test_neovim_says_that_the_program_is_not_found(workspace: Workspace, tmp_path: Path) -> None:
    nvim = program()
    workspace.environment["PATH"] = str(tmp_path)
    tell = "lua io.stdout:write(vim.json.encode({ step = 'messages', value = vim.fn.execute('messages') }))"
    plain = (nvim, "--clean", "--headless", "-u", str(_settings(tmp_path)), str(workspace.root / "notes.md"))

    said = steps(await workspace.run(*plain, "-c", "Sidecar hello", "-c", tell, "-c", "qall!"))

    assert said["messages"].strip().startswith("agent-sidecar is not found: ")


def _settings(tmp_path: Path) -> Path:
    """A file with the page's settings."""
    settings = tmp_path / "settings.lua"
    settings.write_text(blocks("lua")[0], "utf-8")
    return settings
