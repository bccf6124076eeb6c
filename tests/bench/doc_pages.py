"""Reads a page of the documentation as its reader does: its files, its commands, what they print; its links and tables.

A code block whose first line is a comment with a file's name is that file, from there to the end of the page. A block
of `sh` is typed into a terminal; a block of `text` behind it is what it prints. A block marked `not-run` is neither.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"^```(\w*)[ ]?([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME: Final = re.compile(r"# ([\w./-]+\.\w+)\n")
_LINK: Final = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_TABLE: Final = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_HEADING: Final = re.compile(r"^(?=##? )", re.MULTILINE)


class PageError(Exception):
    """A page shows code that nobody could try."""


class Table(NamedTuple):
    """A table of a page."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    """The cells of each, as they are written."""


@dataclass(slots=True)
class Step:
    """Something to type, and what it prints."""

    command: str
    files: dict[str, str]
    """What is in the folder by then, of this section and those before it."""
    printed: str | None = None


@dataclass(slots=True)
class Section:
    """A heading and what stands below it."""

    name: str
    """`page.md: heading`."""
    steps: list[Step] = field(default_factory=list[Step])
    not_run: int = 0


def sections(page: Path, *, only: str | None = None) -> list[Section]:
    """The sections of a page, in order; or only the one with that heading.

    Raises:
        PageError: a block is neither a file nor a command nor what one prints, or a section's code is never tried.
    """
    found: list[Section] = []
    files: dict[str, str] = {}
    text = page.read_text(encoding="utf-8")
    outline = _FENCE.sub(lambda block: "\0" * len(block[0]), text)  # a comment in code is no heading
    starts = [match.start() for match in _HEADING.finditer(outline)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        heading = _heading(part)
        if only in (None, heading):
            found.append(_section(f"{page.name}: {heading}", part, files))
    return found


def tables(page: Path) -> list[Table]:
    """The tables of a page, in order."""
    found: list[Table] = []
    for block in _TABLE.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        heads, _, *rows = (tuple(map(str.strip, line[1:-1].split("|"))) for line in block.splitlines())
        found.append(Table(heads, rows))
    return found


def broken_links(page: Path) -> list[str]:
    """The links of a page to files, and to headings in them, that are not there."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(text) if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in map(_anchor, _HEADING.split(target.read_text(encoding="utf-8")))


def _anchor(section: str) -> str:
    """What a heading is called in a link to it."""
    return re.sub(r"[^\w\- ]", "", _heading(section).lower()).replace(" ", "-")


def _heading(section: str) -> str:
    return section.partition("\n")[0].lstrip("# ")


def _section(name: str, text: str, files: dict[str, str]) -> Section:
    """One section; its files are added to those that are there."""
    section = Section(name)
    untried = False
    for language, mark, code in _FENCE.findall(text):
        if mark == "not-run":
            section.not_run += 1
        elif language == "sh":
            section.steps.append(Step(code, dict(files)))
            untried = False
        elif language == "text" and section.steps and section.steps[-1].printed is None:
            section.steps[-1].printed = code
        elif file := _FILE_NAME.match(code):
            files[file[1]] = code
            untried = True
        else:
            raise PageError(f"{name}: a block of {language or 'code'} is neither a file nor what a command prints")
    if untried:
        raise PageError(f"{name}: nothing is run after its last file")
    return section
