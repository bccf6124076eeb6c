"""What the two distributions hold: exactly their packages, with every file of them that the program reads."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from protocol.version import VERSION

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python"
CONVERSATIONS = "sidecar/cli/conformance/conversations"
"""Where the golden conversations are in the wheel: what `agent-sidecar conformance` plays."""

pytest.importorskip("hatchling")


def build(project: Path, folder: Path) -> ZipFile:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=100)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)


def files(package: Path) -> set[str]:
    """A package's files as they should be in a wheel."""
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def packed(wheel: ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def metadata(wheel: ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


def test_the_sidecar_s_wheel_holds_exactly_the_four_packages(tmp_path: Path) -> None:
    with build(ROOT, tmp_path) as wheel:
        names = packed(wheel)
    packages = [ROOT / "protocol", ROOT / "providers", ROOT / "sidecar", CLIENT / "sidecar_client"]
    golden = {name.replace("transcripts", CONVERSATIONS, 1) for name in files(ROOT / "tests" / "transcripts")}

    assert f"{CONVERSATIONS}/crash.jsonl" in golden
    assert names == golden.union(*map(files, packages))
    assert {
        "protocol/schema.json",
        "protocol/schema.sha256",
        "protocol/openrpc.json",
        "sidecar/lsp/capabilities.json",
        *(f"{package}/py.typed" for package in ("protocol", "providers", "sidecar", "sidecar_client")),
    } <= names


def test_the_client_s_wheel_holds_its_package_and_asks_for_nothing(tmp_path: Path) -> None:
    with build(CLIENT, tmp_path) as wheel:
        names, described = packed(wheel), metadata(wheel)

    assert names == files(CLIENT / "sidecar_client")
    assert "sidecar_client/py.typed" in names
    assert f"Name: agent-sidecar-client\nVersion: {VERSION}\n" in described
    assert "Requires-Dist" not in described
