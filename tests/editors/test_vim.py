"""A whole conversation by Vim 9, with nothing but the settings that `docs/editors.md` shows."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.editors.conftest import Workspace, steps
from tests.editors.editor_settings import REMOVED, assert_replayed, blocks, prepare, seen_by_the_model

SCRIPT = Path(__file__).parent / "vim" / "conversation.vim"


def program() -> str:
    """Vim, with channels; the smaller builds of Debian have none."""
    vim = shutil.which("vim.basic") or shutil.which("vim.nox") or shutil.which("vim")
    if vim is None:
        pytest.skip("no vim here")
    if "+channel" not in subprocess.run([vim, "--version"], check=True, capture_output=True, text=True).stdout:
        pytest.skip(f"{vim} has no channels")
    return vim


def version() -> str:
    """Of Vim, as it tells it, with its patches."""
    told = subprocess.run([program(), "--version"], check=True, capture_output=True, text=True).stdout
    number = re.search(r"Vi IMproved ([\d.]+)", told)
    patches = re.search(r"patches: (\S+?),?\s", told)
    return "".join([number[1] if number else "?", f" (patches {patches[1]})" if patches else ""])


async def test_a_whole_conversation_by_vim(workspace: Workspace, tmp_path: Path, record_property: Any) -> None:
    prepare(workspace)
    settings = tmp_path / "sidecar.vim"
    settings.write_text(blocks("vim")[0], "utf-8")
    notes = workspace.root / "notes.md"
    workspace.environment.update(FILE=str(notes), TERM="dumb")
    # The screen goes nowhere; what the script says goes where the output went.
    quiet = ("sh", "-c", 'exec "$@" 3>&1 >/dev/null', "sh")
    plain = (program(), "--clean", "--not-a-term", "-n", "-i", "NONE")

    said = steps(await workspace.run(*quiet, *plain, "-S", str(settings), "-S", str(SCRIPT)))

    assert said["message"] == {"type": 3, "message": "You said: hello there"}
    assert said["shown"] == ["You said: hello there"]
    kinds = said["progress"]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert "report" in kinds
    assert said["closed"] == []
    assert said["silent"]

    question, answer = said["fix"]
    assert question.startswith(f"Edit document\n{notes.as_uri()}\n@@ line 1 @@\n- as it was saved\n+ as it\n+ is\n")
    assert "rejected" in answer
    assert said["unmended"] == said["undone"] == ["as it was saved", "unsaved, 😋"]
    assert said["mended"] == ["as it", "is", "unsaved, 😋"]
    assert "the editor refuses" in said["stale"][1]
    assert said["kept"] == ["as it was saved", "changed meanwhile"]

    assert said["createSession"] == str(workspace.root)
    assert said["run"] == "You said: hello"
    assert "as it was saved\nchanged meanwhile\n" in seen_by_the_model(said["explainRun"])
    assert said["question"].startswith('Run remove?\n{"path":"a.txt"}\n  Allow once\n')
    assert said["allowed"] == REMOVED
    assert "rejected" in said["dismissed"]
    assert said["dismissed"] == said["rejected"]
    assert said["cancelled"] == "cancelled"

    assert_replayed(said)
    assert said["exit"] == said["exitAgain"] == 0
    assert said["errors"] == [""]
    assert not [line for line in said["messages"] if line.startswith("E")]
    note(record_property, "Vim", version())
