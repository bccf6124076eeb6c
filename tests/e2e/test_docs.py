"""What the pages of the documentation show is what happens: their files are written, their commands are run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.doc_pages import PageError, Section, broken_links, sections

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    "providers.md",
    "plugins.md",
    "tools.md",
    "middleware.md",
    "runtime-context.md",
    "memory.md",
    "text-search.md",
    "coming-from-agent-framework.md",
)
SECTIONS = [
    *(section for page in PAGES for section in sections(DOCS / page)),
    *sections(ROOT / "README.md", only="Write your own"),
]
MOST_NOT_RUN = 2
"""Blocks of all pages that show something else than code."""


@pytest.mark.parametrize("section", [pytest.param(one, id=one.name) for one in SECTIONS if one.steps])
def test_a_section_prints_what_it_shows(section: Section, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()

    for step in section.steps:
        for name, text in step.files.items():
            _write(folder / name, text)
        ran = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", step.command],
            cwd=folder,
            env=_newcomer(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, f"{step.command}\n{ran.stdout}{ran.stderr}"
        if step.printed is not None:
            assert ran.stdout == step.printed, f"{step.command}\n{ran.stderr}"


def _write(file: Path, text: str) -> None:
    """Write it, into a folder that nobody else may write to: others are refused as folders of plug-ins."""
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _newcomer(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has just installed it: no key, no data, no configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {name: str(tmp_path) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return {**kept, "PATH": path, **own}


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page}" for page in PAGES)])
def test_every_link_leads_somewhere(page: str) -> None:
    assert broken_links(ROOT / page) == []


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## A part, of it\n\n[1](#a-part-of-it) [2](page.md) [3](no.md) [4](page.md#no)\n")

    assert broken_links(page) == ["no.md", "page.md#no"]


def test_every_test_that_the_architecture_page_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w./]+)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))

    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_almost_every_block_is_run() -> None:
    assert sum(section.not_run for section in SECTIONS) <= MOST_NOT_RUN


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("# Page\n\n```python\nprint(1)\n```\n", id="code that is no file"),
        pytest.param("# Page\n\n```text\n1\n```\n", id="output of nothing"),
        pytest.param("# Page\n\n```python\n# one.py\nprint(1)\n```\n", id="a file that nobody tries"),
        pytest.param("# Page\n\n```sh\ntrue\n```\n\n```toml\n# one.toml\n```\n", id="a file behind the command"),
    ],
)
def test_a_page_cannot_show_what_nobody_could_try(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")

    with pytest.raises(PageError):
        sections(page)
