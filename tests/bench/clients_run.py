"""Which foreign clients the suite has run, and in which version. Tests note it; the run makes README's table.

`note(record_property, "Neovim", version)` stands at the end of a whole conversation. Its steps are the same for every
client: initialize, a session, a streamed run, a host tool or a permission, a cancel in mid-run, the state, a replay
after reattaching, and shutdown, with no error shown to the user.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"

CLIENTS: Final[Mapping[str, str]] = {
    "Neovim": "language server, with the settings of docs/editors.md",
    "Vim": "language server, with the settings of docs/editors.md",
    "Emacs, Eglot": "language server, with the settings of docs/editors.md",
    "pytest-lsp (pygls)": "language server, and our own methods",
    "vscode-jsonrpc": "our own methods, as a VS Code extension calls them",
    "acpx": "ACP",
    "ACP SDK, TypeScript": "ACP",
    "ACP SDK, Python": "ACP",
}
"""Client → what it speaks. Each has one conversation in the suite."""

_PROPERTY: Final = "client"
_BEGIN: Final = "<!-- clients: written by the test run -->"
_END: Final = "<!-- /clients -->"
_ROW: Final = re.compile(r"^\| (?P<name>[^|]+?) \| (?P<version>[^|]+?) \| (?P<speaks>[^|]+?) \|$", re.MULTILINE)


def note(record_property: Callable[[str, object], None], name: str, version: str) -> None:
    """Say that a client has been through its whole conversation.

    Raises:
        ValueError: it has no row in `CLIENTS`, or no version.
    """
    if name not in CLIENTS or not version.strip():
        raise ValueError(f"{name!r} {version!r}: give CLIENTS a row, and a version here")
    record_property(_PROPERTY, f"{name}={version.strip()}")


def noted(properties: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Client → version, of what a test has recorded."""
    pairs = (str(value).partition("=") for name, value in properties if name == _PROPERTY)
    return {client: version for client, _, version in pairs}


def table(versions: Mapping[str, str]) -> str:
    """README's table. A client that was not run says so."""
    rows = [f"| {name} | {versions.get(name, 'not run')} | {speaks} |" for name, speaks in CLIENTS.items()]
    return "\n".join(["| client | version | what it speaks |", "|---|---|---|", *rows])


def in_readme(text: str) -> dict[str, tuple[str, str]]:
    """Client → version and what it speaks, of the table that the README has."""
    shown = text.partition(_BEGIN)[2].partition(_END)[0]
    rows = list(_ROW.finditer(shown))[1:]
    return {row["name"]: (row["version"], row["speaks"]) for row in rows if not row["name"].startswith("-")}


def written(text: str, versions: Mapping[str, str]) -> str:
    """The README with the table of this run in the place of its own."""
    head, _, rest = text.partition(_BEGIN)
    return f"{head}{_BEGIN}\n{table(versions)}\n{_END}{rest.partition(_END)[2]}"
