"""The list of trusted files: private, whole after any crash, and never a reason to trust more than was said."""

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from sidecar.config.project import distrust_folder, read_project, trust_project
from sidecar.config.trust import TrustedFile, distrust, read_trust, trust, trust_file
from sidecar.errors import ConfigInvalid

FILE = TrustedFile(sha256="0" * 64, brings={"/p/a.md": "1" * 64})


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nothing_is_trusted_at_first() -> None:
    assert read_trust().files == {}
    assert read_trust().problem is None
    assert not trust_file().exists()


def test_trust_is_kept_for_its_user_alone() -> None:
    trust(Path("/p/sidecar.toml"), FILE)

    assert read_trust().files == {"/p/sidecar.toml": FILE}
    assert (mode(trust_file()), mode(trust_file().parent)) == (0o600, 0o700)
    assert {path.name for path in trust_file().parent.iterdir()} == {"trust.json", "trust.lock"}


def test_it_is_withdrawn_for_a_folder_and_all_below_it() -> None:
    for path in ("/p/sidecar.toml", "/p/q/sidecar.toml", "/pq/sidecar.toml"):
        trust(Path(path), FILE)

    assert distrust(Path("/p"), None) == 2
    assert list(read_trust().files) == ["/pq/sidecar.toml"]
    assert distrust(Path("/nowhere"), Path("/pq/sidecar.toml")) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 1}',
        b'{"version": 1, "files": {"/p": true}}',
        b'{"version": 1, "files": {"/p": {"sha256": 3, "brings": {}}}}',
        b'{"version": 2, "files": {}}',
    ],
)
def test_a_damaged_list_trusts_nothing_and_says_so(content: bytes) -> None:
    trust(Path("/p/sidecar.toml"), FILE)
    trust_file().write_bytes(content)

    damaged = read_trust()

    assert damaged.files == {}
    assert damaged.problem is not None
    assert str(trust_file()) in damaged.problem
    trust(Path("/q/sidecar.toml"), FILE)
    assert list(read_trust().files) == ["/q/sidecar.toml"]
    assert read_trust().problem is None


def test_a_list_that_others_may_write_to_trusts_nothing() -> None:
    trust(Path("/p/sidecar.toml"), FILE)
    trust_file().chmod(0o620)

    assert read_trust().files == {}
    assert "other users may write to it" in (read_trust().problem or "")


def test_a_fifo_or_a_folder_in_its_place_is_never_waited_for() -> None:
    trust_file().parent.mkdir(parents=True)
    os.mkfifo(trust_file())

    assert "no regular file" in (read_trust().problem or "")
    trust_file().unlink()
    trust_file().mkdir()
    assert "no regular file" in (read_trust().problem or "")


def test_the_problem_is_told_to_who_has_a_project(tmp_path: Path) -> None:
    (tmp_path / "sidecar.toml").write_text("plugins = ['x']")
    trust_project(tmp_path / "sidecar.toml")
    trust_file().write_text("nonsense")

    project = read_project(tmp_path / "sidecar.toml")

    assert project.trust == "untrusted"
    assert "it is damaged" in project.how_to_trust


def test_trust_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("no folder")

    with pytest.raises(ConfigInvalid, match="trust cannot be kept"):
        trust(Path("/p/sidecar.toml"), FILE)


def test_a_path_that_is_no_unicode_can_be_trusted(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    file = folder / "sidecar.toml"
    file.write_text("plugins = ['.']")
    trust_project(file)

    assert read_project(file).trust == "trusted"
    json.loads(trust_file().read_bytes())
    assert distrust_folder(folder) == 1
    assert read_project(file).trust == "untrusted"


def _trust_many(start: int) -> None:
    for number in range(start, start + 20):
        trust(Path(f"/p{number}/sidecar.toml"), FILE)


def test_processes_that_write_at_the_same_time_lose_nothing() -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_trust_many, args=(start,)) for start in (0, 100, 200)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(read_trust().files) == 60
