"""A whole conversation by Vim 9, with nothing but the settings that `docs/editors.md` shows."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.editors.conftest import BEGINNING, Workspace, steps
from tests.editors.editor_settings import REMOVED, assert_replayed, blocks, prepare, seen_by_the_model

SCRIPT = Path(__file__).parent / "vim" / "conversation.vim"
COLUMNS = 80
"""Of a Vim that has no terminal."""


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
    notes = workspace.root / "notes.md"
    workspace.environment.update(FILE=str(notes))

    said = await _run(workspace, tmp_path, "-S", str(SCRIPT))

    assert said["message"] == {"type": 3, "message": "You said: hello there"}
    assert said["shown"] == ["You said: hello there"]
    kinds = said["progress"]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert "report" in kinds
    assert said["closed"] == []
    assert said["silent"]

    question = said["fix"].splitlines()
    assert max(map(len, question)) <= COLUMNS  # what is longer goes on in the next line
    assert "".join(question).startswith(f"Edit document{notes.as_uri()}@@ line 1 @@- as it was saved+ as it+ is")
    assert said["typed"] == ["as it was saved", "unsaved, 😋", "1", ""]
    assert said["unmended"] == said["undone"] == ["as it was saved", "unsaved, 😋"]
    assert said["mended"] == ["as it", "is", "unsaved, 😋"]
    assert "the editor refuses" in said["stale"][1]
    assert said["kept"] == ["as it was saved", "changed meanwhile"]
    kind, *answers = said["answers"]
    assert kind == "nofile"
    assert answers[2:8] == ["You said: hello there", "", BEGINNING, "(cancelled)", "", "It is a note."]

    assert said["createSession"] == str(workspace.root)
    assert said["run"] == "You said: hello"
    assert "as it was saved\nchanged meanwhile\n" in seen_by_the_model(said["explainRun"])
    assert said["question"].startswith('Run remove?\n{"path":"a.txt"}\n1 Allow once\n2 ')
    assert said["allowed"] == REMOVED
    assert "rejected" in said["dismissed"]
    assert said["dismissed"] == said["rejected"] == said["always"][0]
    assert "rejected by a rule" in said["always"][1]
    assert said["cancelled"] == "cancelled"

    assert_replayed(said)
    assert said["exit"] == said["exitAgain"] == 0
    assert said["errors"] == [""]
    assert not [line for line in said["messages"] if line.startswith("E")]
    note(record_property, "Vim", version())


async def test_vim_says_that_the_program_is_not_found(workspace: Workspace, tmp_path: Path) -> None:
    workspace.environment["PATH"] = str(tmp_path)
    shown = "getbufline(winbufnr(popup_list()[0]), 1, '$')[0]"
    tell = f"call writefile([json_encode({{'step': 'shown', 'value': {shown}}})], '/dev/fd/3')"

    said = await _run(workspace, tmp_path, "-c", "Sidecar hello", "-c", tell, "-c", "qall!")

    assert said["shown"].startswith("agent-sidecar is not found: ")


async def _run(workspace: Workspace, tmp_path: Path, *commands: str) -> dict[str, Any]:
    """Run Vim with the page's settings; the steps that it tells to file descriptor 3. Its screen goes nowhere."""
    settings = tmp_path / "sidecar.vim"
    settings.write_text(blocks("vim")[0], "utf-8")
    workspace.environment["TERM"] = "dumb"
    quiet = ("/bin/sh", "-c", 'exec "$@" 3>&1 >/dev/null', "sh")
    plain = (program(), "--clean", "--not-a-term", "-n", "-i", "NONE", "-S", str(settings))
    return steps(await workspace.run(*quiet, *plain, *commands))
