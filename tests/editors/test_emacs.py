"""A whole conversation by Emacs and Eglot, with nothing but the settings that `docs/editors.md` shows."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients_run import note
from tests.editors.conftest import BEGINNING, Workspace, steps
from tests.editors.editor_settings import REMOVED, assert_replayed, blocks, prepare, seen_by_the_model

SCRIPT = Path(__file__).parent / "emacs" / "conversation.el"
_VERSIONS = """(progn (require 'eglot) (require 'lisp-mnt)
  (princ (format "%s, Eglot %s" emacs-version (lm-version (find-library-name "eglot")))))"""


def program() -> str:
    """Emacs, with Eglot."""
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("no emacs here")
    if subprocess.run([emacs, "--batch", "--eval", "(require 'eglot)"], capture_output=True).returncode != 0:
        pytest.skip("this Emacs has no Eglot")
    return emacs


def version() -> str:
    """Of Emacs and of Eglot."""
    told = subprocess.run([program(), "--batch", "--eval", _VERSIONS], check=True, capture_output=True, text=True)
    return told.stdout


async def test_a_whole_conversation_by_eglot(workspace: Workspace, tmp_path: Path, record_property: Any) -> None:
    prepare(workspace)
    notes = workspace.root / "notes.txt"
    notes.write_text("as it was saved\n")
    workspace.environment.update(FILE=str(notes))

    said = await _run(workspace, tmp_path, "-l", str(SCRIPT))

    assert said["message"] == {"type": 3, "message": "You said: hello there"}
    kinds = said["progress"]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert "report" in kinds
    assert said["answers"].endswith(f"You said: hello there\n\n{BEGINNING}\n(cancelled)\n\n")
    assert said["silent"]

    questions, answer, _ = said["explain"]
    assert "Explain with agent" in questions[0]
    assert answer == "It is a note."
    questions, answer, text = said["unmended"]
    assert "Fix with agent" in questions[0]
    assert questions[1][0].startswith(f"Edit document\n{notes.as_uri()}\n@@ line 1 @@\n- first: as it was saved\n")
    assert "rejected" in answer
    assert text == "first: as it was saved\nunsaved, 😋"
    assert said["mended"][2] == "first: as it\nis\nunsaved, 😋"

    assert said["createSession"] == str(workspace.root)
    assert said["run"] == "You said: hello"
    assert "\nfirst: as it\nis\nunsaved, 😋" in seen_by_the_model(said["explainRun"])
    question, first, *_, last = said["question"]
    assert question.startswith(f'Run remove?\n{{"path":"a.txt"}}\n{first}\n')
    assert question.endswith(f"\n{last}\nNumber of the answer: ")
    assert first == "1 Allow once"
    assert said["allowed"] == REMOVED
    assert "rejected" in said["dismissed"]
    assert said["dismissed"] == said["rejected"]
    assert said["cancelled"] == "cancelled"

    assert_replayed(said)
    assert said["exit"] == said["exitAgain"] == 0
    assert said["errors"] == []
    assert said["warnings"] == ""
    assert said["stderr"].split(maxsplit=1)[0] == "Process"  # as Emacs notes its end: nothing stands before
    assert "ERROR" not in said["log"]
    assert "Server exited with status 0\n" in said["messages"]
    assert not [line for line in said["messages"].splitlines() if "rror" in line or "warning" in line]
    note(record_property, "Emacs, Eglot", version())


async def test_emacs_says_that_the_program_is_not_found(workspace: Workspace, tmp_path: Path) -> None:
    workspace.environment["PATH"] = str(tmp_path)
    refused = '(condition-case it (sidecar-run "hello") (user-error (error-message-string it)))'
    tell = f'(princ (json-serialize (list :step "refused" :value {refused})))'

    said = await _run(workspace, tmp_path, "--eval", tell)

    assert said["refused"].startswith("agent-sidecar is not found: ")


async def _run(workspace: Workspace, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """Run Emacs with the page's settings; the steps that it tells."""
    settings = tmp_path / "settings.el"
    settings.write_text(blocks("elisp")[0], "utf-8")
    return steps(await workspace.run(program(), "--batch", "-l", str(settings), *arguments))
