"""The file of what was typed in `chat`: it grows by what is new, and not for ever."""

import stat
from pathlib import Path

import pytest

from sidecar.cli import line_editor
from sidecar.cli.line_editor import append_lines, read_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "chat-history"


def test_lines_are_added_to_those_of_earlier_times_and_blank_ones_are_not(path: Path) -> None:
    append_lines(path, ["one", "  "])
    append_lines(path, ["zwei é", ""])
    append_lines(path, [])
    assert read_lines(path) == ["one", "zwei é"]


def test_a_file_that_others_could_read_is_theirs_no_longer(path: Path) -> None:
    path.parent.mkdir()
    path.touch(0o644)
    append_lines(path, ["secret"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_newest_lines_are_kept_when_it_has_grown_too_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_editor, "HISTORY_LINES", 2)
    append_lines(path, ["1", "2", "3"])
    append_lines(path, ["4"])
    assert read_lines(path) == ["1", "2", "3", "4"]
    append_lines(path, ["5"])
    assert read_lines(path) == ["3", "4", "5"]


def test_a_place_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    append_lines(tmp_path / "file" / "chat-history", ["one"])
    assert read_lines(tmp_path / "file" / "chat-history") == []
