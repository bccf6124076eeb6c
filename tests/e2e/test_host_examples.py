"""The example hosts in JavaScript and in shell do what their page shows, ask before they act, and tell failures."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.doc_pages import Section, broken_links, sections

FOLDER = Path(__file__).parents[2] / "examples" / "host_provider"
NEEDS = {"host.mjs": "node", "host.sh": "jq"}
HOSTS = {"host.mjs": ["node", "host.mjs"], "host.sh": ["sh", "host.sh"]}


def needed(text: str) -> None:
    """Skip where the program that this host is written in is not there."""
    for host, program in NEEDS.items():
        if host in text and shutil.which(program) is None:
            pytest.skip(f"{host} needs {program}, which is not here")


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> list[str]:
    """The command of one of them."""
    needed(request.param)
    return HOSTS[request.param]


def ran(
    command: list[str], folder: Path, *, said: str = "", path: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it beside its files, with what a person says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
    own = {name: str(folder) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=FOLDER,
        env={**kept, **own, "PATH": path or found},
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "section", [pytest.param(one, id=one.name) for one in sections(FOLDER / "README.md") if one.steps]
)
def test_a_section_of_the_page_prints_what_it_shows(section: Section, tmp_path: Path) -> None:
    needed(section.steps[0].command)

    for step in section.steps:
        shown = ran(["bash", "-eu", "-o", "pipefail", "-c", step.command], tmp_path)
        assert (shown.returncode, shown.stdout) == (0, step.printed), shown.stderr


def test_every_link_of_the_page_leads_somewhere() -> None:
    assert broken_links(FOLDER / "README.md") == []


def test_the_person_sees_all_of_the_call_and_silence_is_no_consent(host: list[str], tmp_path: Path) -> None:
    hidden = ran([*host, "harm\u202eless \x1b[2J"], tmp_path)

    assert (hidden.returncode, "rejected by user" in hidden.stdout) == (0, True)
    assert "\u202e" not in hidden.stderr
    assert "\x1b" not in hidden.stderr
    assert "202e" in hidden.stderr
    assert "less " in hidden.stderr


def test_without_a_sidecar_it_says_so_and_fails(host: list[str], tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("node", "jq", "sh", "dirname", "mktemp", "mkfifo", "rm"):
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)

    failed = ran([*host, "hello"], tmp_path, path=str(tools))

    assert failed.returncode != 0
    assert "agent-sidecar" in failed.stderr
