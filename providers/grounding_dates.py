"""Reads calendar dates out of text, in all the ways that they may be meant. It knows no times and no "yesterday"."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import date
from typing import Final

_MONTHS: Final = (
    "jan january januar janvier enero gennaio janeiro januari",
    "feb february februar f\u00e9vrier febrero febbraio fevereiro februari",
    "mar march m\u00e4rz mars marzo mar\u00e7o maart",
    "apr april avril abril aprile",
    "may mai mayo maggio maio mei",
    "jun june juni juin junio giugno junho",
    "jul july juli juillet julio luglio julho",
    "aug august ao\u00fbt agosto augustus",
    "sep sept september septembre septiembre settembre setembro",
    "oct october oktober octobre octubre ottobre outubro",
    "nov november novembre noviembre novembro",
    "dec december dezember d\u00e9cembre diciembre dicembre dezembro",
)
"""English, German, French, Spanish, Italian, Portuguese, Dutch."""

_NUMBER_OF: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}

_BEGIN: Final = r"(?<![^\W_])(?<!\d[-/.])"
_END: Final = r"(?![^\W_])(?![-/.]\d)"
_ENDING: Final = r"(?:st|nd|rd|th|er|o|\.)?"
_OF: Final = r"(?:(?:of|de)\s)?"

_YEAR_FIRST: Final = re.compile(rf"{_BEGIN}(\d{{4}})([-/.])(\d\d?)\2(\d\d?)(?:(?=t\d)|{_END})")
_YEAR_LAST: Final = re.compile(rf"{_BEGIN}(\d\d?)([-/.])\s?(\d\d?)\2\s?(\d{{4}}|\d\d){_END}")
_EAST_ASIAN: Final = re.compile(
    r"(?<!\d)(\d{4})\s?[\u5e74\ub144]\s?(\d\d?)\s?[\u6708\uc6d4]\s?(\d\d?)\s?[\u65e5\u53f7\uc77c]"
)
_DAY_MONTH: Final = re.compile(rf"{_BEGIN}(\d\d?){_ENDING}[\s-]{_OF}([^\W\d_]+)\.?,?[\s-]{_OF}(\d{{4}}){_END}")
_MONTH_DAY: Final = re.compile(rf"{_BEGIN}([^\W\d_]+)\.?\s(\d\d?)(?:st|nd|rd|th)?,?\s(\d{{4}}){_END}")


def dates_in(text: str) -> set[date]:
    """Every date that stands in the text. "05/06/1990" may be two, and "17/05/90" of two centuries."""
    return {day for _, days in _found(_folded(text)) for day in days}


def dates_of(value: str) -> set[date]:
    """Every date that the whole value may mean; none, where it is something else or more than a date."""
    folded = _folded(value)
    return {day for found, days in _found(folded) if found == folded for day in days}


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _found(text: str) -> Iterator[tuple[str, list[date]]]:
    """What looks like a date, and the dates that it may mean."""
    for pattern, read in _READERS:
        for found in pattern.finditer(text):
            yield found[0], [day for numbers in read(found) if (day := _day(*numbers)) is not None]


Numbers = tuple[int, int, int]
"""Year, month, day; perhaps of no calendar."""


def _year_first(found: re.Match[str]) -> Iterator[Numbers]:
    yield int(found[1]), int(found[3]), int(found[4])


def _year_last(found: re.Match[str]) -> Iterator[Numbers]:
    """A day and a month change places from country to country."""
    first, second = int(found[1]), int(found[3])
    for year in (int(found[4]),) if len(found[4]) > 2 else (1900 + int(found[4]), 2000 + int(found[4])):
        yield year, second, first
        yield year, first, second


def _east_asian(found: re.Match[str]) -> Iterator[Numbers]:
    yield int(found[1]), int(found[2]), int(found[3])


def _day_month(found: re.Match[str]) -> Iterator[Numbers]:
    yield int(found[3]), _NUMBER_OF.get(found[2], 0), int(found[1])


def _month_day(found: re.Match[str]) -> Iterator[Numbers]:
    yield int(found[3]), _NUMBER_OF.get(found[1], 0), int(found[2])


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_READERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Iterator[Numbers]]], ...]] = (
    (_YEAR_FIRST, _year_first),
    (_YEAR_LAST, _year_last),
    (_EAST_ASIAN, _east_asian),
    (_DAY_MONTH, _day_month),
    (_MONTH_DAY, _month_day),
)
