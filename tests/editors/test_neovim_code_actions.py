"""Code actions and edits in Neovim, which nobody has told anything of the sidecar but how to start it."""

import shutil
from pathlib import Path

import pytest

from tests.editors.conftest import Workspace, steps

SCRIPT = Path(__file__).parent / "neovim" / "code_actions.lua"
BEFORE = ["é😋 unsaved", "text = wrnog", "end"]
AFTER = ["é😋 mended", "text = right", "end"]

_MODEL = """
[[reply]]
when_tool = "edit_document"
text = "Told: {{result}}"

[[reply]]
when = "Find and fix"
calls = [{{ name = "edit_document", arguments = {{ uri = "{uri}", edits = [
  {{ old_string = "unsaved", new_string = "mended" }}, {{ old_string = "wrnog\\nend", new_string = "right\\nend" }},
] }} }}]

[[reply]]
when = "."
text = ["You said: ", "{{input}}"]
"""


async def test_neovims_own_menu_explains_and_fixes_and_its_undo_takes_the_fix_back(
    workspace: Workspace, tmp_path: Path
) -> None:
    nvim = shutil.which("nvim", path=workspace.environment["PATH"])
    if nvim is None:
        pytest.skip("no nvim here; .ci/run installs it")
    notes = workspace.root / "notes.md"
    (tmp_path / "model.toml").write_text(_MODEL.format(uri=notes.as_uri()), "utf-8")

    said = steps(await workspace.run(nvim, "--clean", "--headless", "-l", str(SCRIPT), str(notes)))

    assert said["explained"].startswith(f"You said: Explain line 1 of {notes.as_uri()}")
    assert "rejected by user" in said["rejected"]
    assert said["unchanged"] == BEFORE
    assert "Told: Edited" in said["fixed"]
    assert said["changed"] == AFTER
    menu, _, question, *_ = said["asked"]
    assert [title.partition(" with agent")[0] for title in menu["titles"]] == ["Fix", "Explain"]
    assert question["titles"][0] == "Allow once"
    assert "@@ line 1 @@\n- é😋 unsaved\n- text = wrnog\n+ é😋 mended\n+ text = right\n  end" in question["prompt"]
    assert said["shown"] == {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": 13}}
    assert said["undone"] == BEFORE
    assert notes.read_text("utf-8") == "as it was saved\n"
