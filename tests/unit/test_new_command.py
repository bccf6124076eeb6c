"""`new provider NAME` writes a provider that works as it is, and never over something else."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sidecar.cli.main import main

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fresh = tmp_path / "fresh"
    fresh.mkdir(mode=0o755)
    return fresh


def new(folder: Path, name: str = "topic_notes") -> int:
    return main(["new", "provider", name, "--dir", str(folder)])


def test_it_writes_a_provider_its_test_and_a_configuration(folder: Path, capsys: Printed) -> None:
    assert new(folder) == 0

    assert {path.name for path in folder.iterdir()} == {"topic_notes.py", "test_topic_notes.py", "topic_notes.toml"}
    classes = [node.name for node in ast.parse((folder / "topic_notes.py").read_text()).body if hasattr(node, "bases")]
    assert classes == ["TopicNotesConfig", "TopicNotes"]
    assert "topic_notes" in tomllib.loads((folder / "topic_notes.toml").read_text())["agents"]
    assert "$" not in "".join(path.read_text() for path in folder.iterdir())
    assert f"-m pytest {folder / 'test_topic_notes.py'}" in capsys.readouterr().out


def test_the_generated_test_passes_in_a_fresh_folder(folder: Path) -> None:
    new(folder)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env=_newcomer(folder),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout


def test_the_generated_configuration_runs(folder: Path) -> None:
    new(folder)

    ran = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("agent-sidecar")), "run", "hello", "--store", "memory"),
            *("--config", "topic_notes.toml", "--agent", "topic_notes", "--model", "scripted:echo"),
        ],
        cwd=folder,
        env=_newcomer(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (0, "hello\n"), ran.stderr


def test_what_is_generated_keeps_the_rules_of_this_house(folder: Path) -> None:
    new(folder)
    config = Path(__file__).parents[2] / "pyproject.toml"

    for command in (["check", "--ignore", "S101,INP001,D103"], ["format", "--check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", str(config), str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["topic_notes.py", "test_topic_notes.py", "topic_notes.toml"])
def test_nothing_is_overwritten_and_nothing_half_written(folder: Path, name: str, capsys: Printed) -> None:
    (folder / name).symlink_to(folder / "nowhere")

    assert new(folder) == 1

    assert [path.name for path in folder.iterdir()] == [name]
    assert f"{folder / name}: there already; nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["", "Notes", "my-notes", "1st", "a b", "../x", "ünder", "_x", "class", "match", "test_x", "x" * 65]
)
def test_a_name_that_cannot_be_one_is_refused(folder: Path, name: str, capsys: Printed) -> None:
    assert new(folder, name) == 2

    assert list(folder.iterdir()) == []
    assert "name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["json", "pydantic", "providers"])
def test_a_name_that_another_module_has_is_refused(folder: Path, name: str, capsys: Printed) -> None:
    assert new(folder, name) == 2

    assert f"there is a module {name!r} already" in capsys.readouterr().err


def test_a_folder_that_is_none_is_refused(folder: Path, capsys: Printed) -> None:
    assert new(folder / "gone") == 2
    assert "gone is no folder" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_told(folder: Path, capsys: Printed) -> None:
    folder.chmod(0o555)

    assert new(folder) == 1
    assert "Permission denied" in capsys.readouterr().err


def _newcomer(folder: Path) -> dict[str, str]:
    """An environment with the installed command on the path, and nothing of this machine's user."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "PYTHON", "AGENT_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(folder.parent), "XDG_CONFIG_HOME": str(folder.parent)}
