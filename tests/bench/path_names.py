"""Names that lead somewhere else, or would if somebody decoded, folded, cut or joined them. Tests only."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final
from urllib.parse import quote

_STEPS: Final = (
    "..", "...", ". .", ".. ", " ..", "%2e%2e", "%252e%252e", "..;", "..\0", "\u200b..", "..\u202e",
    "\N{FULLWIDTH FULL STOP}" * 2, "\N{ONE DOT LEADER}" * 2, "\N{TWO DOT LEADER}",
)  # fmt: skip
_SEPARATORS: Final = (
    "/", "\\", "//", "\\/", "%2f", "%5c", "%252f", "%c0%af", "\N{DIVISION SLASH}", "\N{FRACTION SLASH}",
    "\N{FULLWIDTH SOLIDUS}", "\N{FULLWIDTH REVERSE SOLIDUS}", "\N{REVERSE SOLIDUS OPERATOR}", ":", "\0", "\n",
)  # fmt: skip
_DEVICES: Final = ("con", "CON", "Nul.md", "aux", "prn.txt", "com1", "LPT9.md", "com\N{SUPERSCRIPT ONE}", "clock$")
_ODD: Final = (
    "", ".", "..", " ", "\t", "\n", "x/", "x//", "x\\", "/", "\\", "x ", "x.", ".x", "-", "--", "-rf", "*", "?", "[a]",
    "~", "~root/x", "$HOME/x", "C:\\x", "C:x", "\\\\server\\share", "notes.md.tmp", ".tmp-0", "notes.md~", ".git/x",
)  # fmt: skip
_OWN: Final = (
    "memories.md", "MEMORIES.MD", "memories.md ", "memories.md::$DATA", "memorie\N{LATIN SMALL LETTER LONG S}.md",
    "\N{FULLWIDTH LATIN SMALL LETTER M}emories.md", "x_description.md", "X_Description.MD", "_description.md",
    "x\N{FULLWIDTH LOW LINE}description.md", "~x_description.md", "sessions", "names", "scopes",
)  # fmt: skip
_LONG: Final = (
    "x" * 199, "x" * 200, "x" * 201, "x" * 255, "x" * 300, "x" * 70_000, "\u00e9" * 127, "\u00e9" * 128,
    "\N{PILE OF POO}" * 64, "../" * 500 + "x",
)  # fmt: skip
_ALIKE: Final = (
    "notes.md", "NOTES.MD", "Notes.md", "n\u006ftes.md", "n\N{CYRILLIC SMALL LETTER O}tes.md", "file.md",
    "\N{LATIN SMALL LIGATURE FI}le.md", "i.md", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}.md",
    "\N{LATIN SMALL LETTER DOTLESS I}.md", "\N{LATIN SMALL LETTER SHARP S}.md", "SS.md", "\u00e9.md", "e\u0301.md",
    "\u00c9.md", "E\u0301.md", "\u212b.md", "\u00c5.md", "A\u030a.md",
)  # fmt: skip
_INVISIBLE: Final = (*range(32), 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x2028, 0x202E, 0xFEFF, 0xD800, 0xDFFF, 0xE000)


def path_names(target: Path) -> list[str]:
    """More than five hundred of them, each once.

    Args:
        target: A file that some of them lead to, if they lead anywhere.
    """
    return list(dict.fromkeys(_all(target)))


def _all(target: Path) -> Iterator[str]:
    where = str(target)
    yield from (step + separator + target.name for step, separator in product(_STEPS, _SEPARATORS))
    yield from ((f"..{separator}") * depth + target.name for separator, depth in product(_SEPARATORS, (2, 3, 8)))
    yield from ("a/" + (step + "/") * 2 + target.name for step in _STEPS)
    yield from (start + where for start in ("", "/", "//", "a/", " ", "\0", "x.md\0", "x.md/", "\\\\?\\", "file://"))
    yield from (where.replace("/", "\\"), quote(where, safe=""))
    yield from (*_DEVICES, *(device + ":" for device in _DEVICES), *_ODD, *_OWN, *_LONG, *_ALIKE)
    yield from (f"a{chr(code)}b" for code in _INVISIBLE)
    yield from (f"plain {number}.md" for number in range(100))
