"""Decides whether an extracted value stands in a text. Small models invent; what they invent is not there."""

import math
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from .grounding_dates import dates_in, dates_of

_NUMBER: Final = re.compile(r"[-\u2212]?\d+(?:[.,]\d+)*")
_SPACED_NUMBER: Final = re.compile(r"(?<![\d.,])[-\u2212]?\d{1,3}(?:[ '\u00a0\u2009\u202f]\d{3})+(?![\d])(?:[.,]\d+)?")
"""Thousands set apart by a blank or an apostrophe. It may as well be two numbers, so this is one reading of several."""

_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}")

_JOINED: Final = re.compile(r"\d[.,:/'-]\d")
"""A mark that belongs to the digits around it."""

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

_SAME_LETTER: Final = {"i\u0307": "i", "\u0131": "i", "\u2019": "'"}
"""Turkish has four letters where case folding knows two; a typed apostrophe and a set one are the same."""


def is_grounded(value: Any, text: str) -> bool:
    """Whether `value` occurs in `text`.

    Strings: case-folded, in NFC, as whole words, or as the same date in another notation. A string of digits and marks
    ("555-1234") must stand there as it is, and be no part of a longer one. Numbers: as whole numbers, with or without
    marks between their thousands. Everything else (booleans, arrays, objects, nothing) cannot be looked for and is not
    grounded.
    """
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return _has_words(_folded(value), _folded(text)) or _has_date(value, text)
    if isinstance(value, int):
        return any(reading == value for reading in _numbers(text))
    if isinstance(value, float):
        return math.isfinite(value) and any(float(reading) == value for reading in _numbers(text))
    return False


def has_letters(value: str) -> bool:
    """Whether it is more than digits and marks."""
    return any(character.isalpha() for character in value)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    for one, other in _SAME_LETTER.items():
        folded = folded.replace(one, other)
    return " ".join(folded.split())


def _has_words(words: str, text: str) -> bool:
    is_end = _is_boundary
    if not has_letters(words):
        if not any(character.isdecimal() for character in words):
            return False
        words, text, is_end = _with_plain_digits(words), _with_plain_digits(text), _is_end_of_digits
    start = text.find(words)
    while start >= 0:
        if is_end(text, start) and is_end(text, start + len(words)):
            return True
        start = text.find(words, start + 1)
    return False


def _with_plain_digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(character)) if character.isdecimal() else character for character in text)


def _is_end_of_digits(text: str, at: int) -> bool:
    """Whether digits may begin or end here: "20" is not in "20.5", nor "2020-05" in "2020-05-01"."""
    return _is_boundary(text, at) and not any(
        _JOINED.fullmatch(text, max(start, 0), start + 3) for start in (at - 2, at - 1)
    )


def _has_date(value: str, text: str) -> bool:
    days = dates_of(value)
    return bool(days) and not days.isdisjoint(dates_in(text))


def _is_boundary(text: str, at: int) -> bool:
    """Whether a word may begin or end between the characters `at - 1` and `at`."""
    if at in (0, len(text)):
        return True
    left, right = text[at - 1], text[at]
    if _is_mark(right):
        return False
    if _is_unspaced(left) or _is_unspaced(right):
        return True
    return not (_in_word(left) and _in_word(right))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or _is_mark(character)


def _is_mark(character: str) -> bool:
    """Whether it belongs to the character before it: an accent, a vowel sign."""
    return unicodedata.category(character).startswith("M")


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in _UNSPACED)


def _numbers(text: str) -> Iterator[Decimal]:
    """All that the numbers of a text may mean. Digits at a word's end ("R2", "v20") are none."""
    for found in _NUMBER.finditer(text):
        if found.start() == 0 or not found[0][0].isdigit() or _may_precede(text[found.start() - 1]):
            yield from _readings(found[0])
    for found in _SPACED_NUMBER.finditer(text):
        yield from _readings("".join(re.split(r"[^\d.,\u2212-]", found[0])))


def _may_precede(character: str) -> bool:
    return _is_unspaced(character) or not _in_word(character)


def _readings(token: str) -> Iterator[Decimal]:
    """A mark is decimal in one country and groups thousands in the next."""
    plain = token.lstrip("-\u2212")
    readings = list(_unsigned_readings(plain))
    yield from readings  # also where there is a sign: "2019-20" holds no negative number
    if plain != token:
        yield from (-reading for reading in readings)


def _unsigned_readings(plain: str) -> Iterator[Decimal]:
    marks = {character for character in plain if character in ".,"}
    whole, mark, rest = _split(plain)
    is_grouped = len(marks) == 1 and _GROUPED.fullmatch(plain) is not None
    if is_grouped:
        yield Decimal(plain.replace(mark, ""))
    if not marks or plain.count(mark) == 1 == len(marks):
        yield Decimal(f"{whole}.{rest or 0}")
    elif len(marks) == 2 and mark not in whole and _GROUPED.fullmatch(whole):
        yield Decimal(f"{re.sub('[.,]', '', whole)}.{rest}")
    elif not is_grouped:  # a date, a version: numbers side by side
        yield from map(Decimal, re.split("[.,]", plain))


def _split(number: str) -> tuple[str, str, str]:
    """What stands before the last mark, the mark, and what stands after it."""
    at = max(number.rfind("."), number.rfind(","))
    return (number, "", "") if at < 0 else (number[:at], number[at], number[at + 1 :])
