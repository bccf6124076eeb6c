"""A whole conversation by Neovim, with nothing but the settings that `docs/editors.md` shows."""

import re
import shutil
from pathlib import Path

import pytest

from tests.editors.conftest import STALLS, Workspace, steps

SCRIPT = Path(__file__).parent / "neovim" / "conversation.lua"
DOCS = Path(__file__).parents[2] / "docs" / "editors.md"


async def test_a_whole_conversation_by_neovim(workspace: Workspace, tmp_path: Path) -> None:
    nvim = shutil.which("nvim", path=workspace.environment["PATH"])
    if nvim is None:
        pytest.skip("no nvim here; .ci/run installs it")
    settings = tmp_path / "settings.lua"
    settings.write_text(lua_of(DOCS.read_text("utf-8")))
    workspace.environment["STALLS"] = STALLS
    notes = workspace.root / "notes.md"

    said = steps(await workspace.run(nvim, "--clean", "--headless", "-l", str(SCRIPT), str(settings), str(notes)))

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
    assert said["cancelRequest"] == "cancelled"
    assert said["exit"] == 0


def lua_of(page: str) -> str:
    """The page's first block of Lua: the settings."""
    block, *_ = re.findall(r"^```lua\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    return block
