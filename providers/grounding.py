"""Decides whether an extracted value stands in a text. Small models invent; what they invent is not there."""

import re
import unicodedata
from typing import Any, Final

_NUMBER: Final = re.compile(r"[-\u2212]?\d+(?:[.,]\d+)*")

_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x9FFF),  # CJK radicals to unified ideographs, kana
    (0xA960, 0xA97F),  # Hangul Jamo
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFF9F),  # half-width kana
    (0x20000, 0x3FFFF),  # CJK extensions
)
"""Scripts that put no blank between words, or join particles to them."""


def is_grounded(value: Any, text: str) -> bool:
    """Whether `value` occurs in `text`.

    Strings: case-folded, in NFC, as whole words, and not digits only. Numbers: as whole numbers. Everything else
    (booleans, arrays, objects, nothing) cannot be looked for and is not grounded.
    """
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return _has_words(_folded(value).strip(), _folded(text))
    if isinstance(value, int | float):
        return any(value in readings for readings in map(_readings, _NUMBER.findall(text)))
    return False


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _has_words(words: str, text: str) -> bool:
    if not words or not any(character.isalpha() for character in words):
        return False
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        if _is_boundary(text, start) and _is_boundary(text, end):
            return True
        start = text.find(words, start + 1)
    return False


def _is_boundary(text: str, at: int) -> bool:
    """Whether a word may begin or end between the characters `at - 1` and `at`."""
    if at in (0, len(text)):
        return True
    left, right = text[at - 1], text[at]
    if _unspaced(left) or _unspaced(right):
        return True
    return not (_in_word(left) and _in_word(right))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.combining(character) != 0


def _unspaced(character: str) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in _UNSPACED)


def _readings(token: str) -> set[float]:
    """What a number in a text may mean: separators are decimal in one country and group thousands in the next."""
    plain = token.replace("\u2212", "-")
    found: set[float] = set()
    for decimal, group in ((".", ","), (",", ".")):
        try:
            found.add(float(plain.replace(group, "").replace(decimal, ".")))
        except ValueError:
            continue
    if plain.startswith("-"):  # "aged-20" and "2019-20" put a dash before a number that is not negative
        found |= _readings(plain[1:])
    return found
