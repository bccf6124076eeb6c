"""How the client finds its sidecar, and cuts its output into lines."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar_client import process
from sidecar_client.process import LineSplitter, clean_environment, find_command

LINES = st.lists(st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"")), max_size=6)


@given(lines=LINES, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_lines_survive_any_split(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = LineSplitter()
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert [line for piece in pieces for line in splitter.feed(piece)] == lines


def _script(folder: Path) -> str:
    folder.mkdir()
    script = folder / "agent-sidecar"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return str(script)


def test_the_script_beside_the_interpreter_is_taken_before_that_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, on_path = _script(tmp_path / "beside"), _script(tmp_path / "path")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    assert find_command() == [beside]
    Path(beside).unlink()
    assert find_command() == [on_path]


def test_without_a_script_the_module_is_run_isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(process.sys, "executable", str(tmp_path / "python"))
    assert find_command() == [str(tmp_path / "python"), "-I", "-m", "sidecar"]


def test_extra_variables_cannot_bring_python_path_back() -> None:
    assert "PYTHONPATH" not in clean_environment({"PYTHONPATH": "x"})


@pytest.mark.parametrize("entry", ["", ".", "ws"])
def test_entries_of_the_path_that_are_not_absolute_find_no_program_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    _script(tmp_path / "ws")
    installed = _script(tmp_path / "installed")
    monkeypatch.chdir(tmp_path if entry == "ws" else tmp_path / "ws")
    monkeypatch.setenv("PATH", f"{entry}:{tmp_path / 'installed'}")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_command() == [installed]


def test_an_interpreter_that_does_not_know_where_it_is_finds_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _script(tmp_path / "ws")
    installed = _script(tmp_path / "installed")
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setenv("PATH", str(tmp_path / "installed"))
    monkeypatch.setattr(sys, "executable", "")
    assert find_command() == [installed]
