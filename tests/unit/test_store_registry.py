"""Which store a spec names."""

from pathlib import Path

import pytest

from sidecar.stores.memory import MemoryStore
from sidecar.stores.registry import default_path, make_store
from sidecar.stores.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("spec", "kind"), [("memory", MemoryStore), ("sqlite", SqliteStore), ("sqlite:C:/data/x.db", SqliteStore)]
)
def test_a_spec_names_a_store(spec: str, kind: type) -> None:
    assert type(make_store(spec)) is kind


@pytest.mark.parametrize("spec", ["", "redis", "memory:here", "/tmp/sessions.db"])
def test_an_unknown_spec_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="store"):
        make_store(spec)


def test_the_default_place_is_the_users_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path().name == "sessions.db"
    assert default_path().parent.name == "agent-sidecar"
