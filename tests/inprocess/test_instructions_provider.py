"""`instructions`: which AGENTS.md files a session's folder has, and which of them may not be read."""

import os
from pathlib import Path
from typing import Any

import pytest

from protocol.agents import AgentSpec, ProviderEntry
from providers.api.provider import Surroundings
from providers.instructions import MAX_FILE_BYTES, read_all
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.plan import SessionSettings, make_plan
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says

NAMES = ("AGENTS.md",)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, with a file of its own above it."""
    folder = tmp_path / "users" / "home"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    (folder.parent / "AGENTS.md").write_text("above home")
    return folder


@pytest.fixture
def repo(home: Path) -> Path:
    """A repository with a folder in a folder, and a file in each."""
    root = home / "repo"
    (root / "src" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    for folder, text in ((home, "home"), (root, "root"), (root / "src", "src"), (root / "src" / "deep", "deep")):
        (folder / "AGENTS.md").write_text(text)
    return root


def bodies(cwd: Path, names: tuple[str, ...] = NAMES) -> list[str]:
    return [text.split("\n\n", 1)[1] for text in read_all(cwd, names)]


def test_files_are_read_from_the_repository_s_root_down_to_the_folder(repo: Path) -> None:
    assert read_all(repo / "src" / "deep", NAMES) == [
        "# AGENTS.md\n\nroot",
        "# src/AGENTS.md\n\nsrc",
        "# src/deep/AGENTS.md\n\ndeep",
    ]
    assert bodies(repo) == ["root"]


def test_an_inner_repository_ends_the_walk(repo: Path) -> None:
    (repo / "src" / ".git").write_text("gitdir: elsewhere")

    assert bodies(repo / "src" / "deep") == ["src", "deep"]


def test_outside_a_repository_only_the_folder_itself_counts(home: Path) -> None:
    inner = home / "notes" / "today"
    inner.mkdir(parents=True)
    (inner.parent / "AGENTS.md").write_text("outer")
    (inner / "AGENTS.md").write_text("inner")

    assert bodies(inner) == ["inner"]


def test_the_walk_never_goes_above_home(home: Path, repo: Path) -> None:
    (home.parent / ".git").mkdir()
    (repo / ".git").rmdir()

    assert bodies(repo) == ["root"]


def test_the_walk_stops_below_the_folders_that_home_is_in(home: Path) -> None:
    (home.parent / ".git").mkdir()
    other = home.parent / "other" / "inner"
    other.mkdir(parents=True)
    (other / "AGENTS.md").write_text("inner")

    assert bodies(other) == ["inner"]


def test_home_may_be_reached_by_a_link(home: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alias = home.parents[1] / "alias"
    alias.symlink_to(home)
    monkeypatch.setenv("HOME", str(alias))
    (home.parent / ".git").mkdir()
    (repo / ".git").rmdir()

    assert bodies(repo) == ["root"]


def test_a_home_that_cannot_be_known_is_no_obstacle(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)

    assert bodies(repo / "src") == ["root", "src"]


def test_home_itself_may_be_a_repository(home: Path, repo: Path) -> None:
    (home / ".git").mkdir()
    (repo / ".git").rmdir()

    assert bodies(repo) == ["home", "root"]


def test_a_link_that_leads_out_of_the_repository_is_passed_over(home: Path, repo: Path) -> None:
    (home / "secret").write_text("secret")
    (repo / "AGENTS.md").unlink()
    (repo / "AGENTS.md").symlink_to(home / "secret")

    assert bodies(repo / "src") == ["src"]


def test_a_link_inside_the_repository_is_followed(repo: Path) -> None:
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")

    assert bodies(repo, ("CLAUDE.md",)) == ["root"]


@pytest.mark.parametrize("kind", ["circle", "broken", "folder", "pipe"])
def test_what_is_no_readable_file_is_passed_over(repo: Path, kind: str) -> None:
    path = repo / "AGENTS.md"
    path.unlink()
    match kind:
        case "circle":
            path.symlink_to("AGENTS.md")
        case "broken":
            path.symlink_to("nowhere")
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path)

    assert bodies(repo / "src") == ["src"]


def test_a_file_that_cannot_be_opened_is_passed_over(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path == repo / "AGENTS.md":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)  # permissions do not stop root, who may run this

    assert bodies(repo / "src") == ["src"]


def test_a_folder_that_is_gone_or_a_circle_has_none(repo: Path) -> None:
    (repo / "circle").symlink_to("circle")

    assert read_all(repo / "gone", NAMES) == []
    assert read_all(repo / "circle", NAMES) == []


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff"])
def test_a_blank_file_says_nothing(repo: Path, text: str) -> None:
    (repo / "AGENTS.md").write_text(text, encoding="utf-8")

    assert bodies(repo) == []


def test_a_long_file_is_cut_and_says_so(repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(b"x" * (MAX_FILE_BYTES - 1) + "é".encode() + b"never")

    [text] = bodies(repo)

    assert text == "x" * (MAX_FILE_BYTES - 1) + "\n[AGENTS.md is cut after 64 KiB]"


def test_a_file_of_just_the_limit_is_whole(repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(b"x" * MAX_FILE_BYTES)

    assert bodies(repo) == ["x" * MAX_FILE_BYTES]


def test_bad_bytes_are_replaced_and_a_byte_order_mark_is_none_of_the_text(repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(b"\xef\xbb\xbfa \xff b\0c")

    assert bodies(repo) == ["a \ufffd b\ufffdc"]


def test_several_names_are_looked_for_in_each_folder(repo: Path) -> None:
    (repo / "src" / "NOTES.md").write_text("notes")

    assert bodies(repo / "src", ("NOTES.md", "AGENTS.md")) == ["root", "notes", "src"]


async def test_the_files_stand_between_the_agent_s_and_the_run_s_instructions_and_are_read_anew(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AgentSpec(instructions="agent", context_providers=(ProviderEntry(type="instructions"),))
    plan = make_plan(ResolvedAgent("a", agent), SessionSettings(), Surroundings(cwd=str(repo)), with_history=False)
    run = AgentRun(FakeClient(says("ok"), says("ok"), says("ok")), plan=plan)

    await run.say("hi", run_instructions="run")
    (repo / "AGENTS.md").write_text("changed")
    monkeypatch.setattr("providers.instructions.READ_AGAIN_AFTER_S", 3600)
    await run.say("hi")
    monkeypatch.setattr("providers.instructions.READ_AGAIN_AFTER_S", 0)
    await run.say("hi")

    assert run.client.requests[0].instructions == "agent\n# AGENTS.md\n\nroot\nrun"
    assert run.client.requests[1].instructions == "agent\n# AGENTS.md\n\nroot"
    assert run.client.requests[2].instructions == "agent\n# AGENTS.md\n\nchanged"


async def test_a_session_without_a_folder_has_none() -> None:
    agent = AgentSpec(context_providers=(ProviderEntry(type="instructions"),))
    plan = make_plan(ResolvedAgent("a", agent), SessionSettings(), Surroundings(), with_history=False)
    run = AgentRun(FakeClient(says("ok")), plan=plan)

    await run.say("hi")

    assert run.client.requests[0].instructions == ""
