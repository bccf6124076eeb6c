"""The index of a file memory: what is in it, in few words. Text only."""

from collections.abc import Mapping, Sequence
from typing import Final

MAX_LISTED: Final = 50
MAX_WORDS: Final = 200
"""Characters of a description in the index; the whole of it is in its file."""
MAX_INDEX_CHARS: Final = 32_000
"""A longer file in the index's place is none that we wrote."""


def listed(names: Sequence[str]) -> list[str]:
    """The files that an index names: the first ones by alphabet."""
    return sorted(names, key=lambda name: (name.casefold(), name))[:MAX_LISTED]


def index_text(names: Sequence[str], descriptions: Mapping[str, str]) -> str:
    """A line for each file.

    Args:
        names: Of all files, in any order.
        descriptions: Of those that have one, by name.
    """
    lines = ["# Memories", ""]
    for name in listed(names):
        words = one_line(descriptions.get(name, ""))
        lines.append(f"- {name}: {words}" if words else f"- {name}")
    if len(names) > MAX_LISTED:
        lines.append(f"\n{len(names) - MAX_LISTED} more files are not listed here; file_memory_ls shows all.")
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """A description on one line, cut where it is too long."""
    words = " ".join(text.split())
    return words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 1] + "…"
