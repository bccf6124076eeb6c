"""Which characters of a text people see as they are. For whoever is asked to agree to it; it changes nothing."""

from collections.abc import Iterator
from typing import Final
from unicodedata import category, name

_MAX_MARKS: Final = 2
"""Combining marks on one letter that are shown as they are: what writing needs, and no more than one can see."""
_INVISIBLE: Final = frozenset(
    map(
        chr,
        [
            0x034F,  # grapheme joiner
            *(0x115F, 0x1160, 0x3164, 0xFFA0, 0x16FE4),  # fillers
            *(0x17B4, 0x17B5),  # inherent vowels
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),  # variation selectors, all three
            *(0x2800, 0x13441, 0x13442, 0x1D159),  # blanks
        ],
    )
)
"""What takes no ink although Unicode calls it printable."""


def seen(line: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it shows what it is: it takes ink, moves no other, and hides in no heap of marks."""
    base, marks = "", 0
    for character in line:
        kind = category(character)
        if kind in ("Mn", "Me"):
            marks += 1
            is_shown = character not in _INVISIBLE and marks <= _MAX_MARKS and _is_mark_of(character, base)
        else:
            is_shown = character.isprintable() and character not in _INVISIBLE
            # A vowel sign that takes room of its own leaves the marks to its letter.
            if kind != "Mc" or not is_shown:
                base, marks = character if is_shown and kind[0] in "LN" else "", 0
        if not is_shown:
            base = ""
        yield character, is_shown


def _is_mark_of(mark: str, base: str) -> bool:
    """Whether a mark is at home on a letter or number: one of the same script, by Unicode's name, or of any."""
    script = name(mark, "").partition(" ")[0]
    return bool(base) and script in ("COMBINING", name(base, "").partition(" ")[0])
