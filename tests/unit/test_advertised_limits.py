"""What `initialize` tells of limits before the program is loaded: nothing where a file may have changed them."""

from pathlib import Path

import pytest
from pydantic.alias_generators import to_snake

from protocol.features import LIMITS
from sidecar.app import advertised
from sidecar.config.files import user_config_file
from sidecar.config.limits import Limits
from sidecar.config.scope import connection_keys
from sidecar.handshake import may_set_limits, user_config_files


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def test_the_constants_are_the_defaults() -> None:
    assert advertised(Limits()) == LIMITS


def test_what_is_told_counts_for_the_connection_and_no_project_can_change_it() -> None:
    names = [to_snake(name) for name in LIMITS]

    assert connection_keys({"limits": dict.fromkeys(names, 1)}) == [("limits", name) for name in names]


@pytest.mark.parametrize("folder", [None, "elsewhere", ""])
def test_the_users_file_is_looked_for_where_it_is(
    folder: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folder is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", folder and str(home / folder))
    file = user_config_file()
    assert str(file) in user_config_files()
    assert not may_set_limits(None)

    file.parent.mkdir(parents=True)
    file.write_text("[agents.a]")
    assert not may_set_limits(None)
    file.write_text("[limits]\nmax_in_flight = 1")
    assert may_set_limits(None)


@pytest.mark.parametrize(
    "text", ["[limits]\n", "[ limits ]\n", "limits.max_turns = 3", "limits = { max_turns = 3 }", '["limits"]']
)
def test_every_way_to_write_the_table_is_seen(text: str, home: Path) -> None:
    file = home / "extra.toml"
    file.write_text(text)

    assert may_set_limits(str(file))


def test_what_cannot_be_read_is_left_to_the_program(home: Path) -> None:
    assert not may_set_limits(str(home / "missing.toml"))
    assert not may_set_limits(str(home))
    assert not may_set_limits("/dev/zero")
