"""Grounding: a value is kept only where the text holds it. Examples by script, and properties over any text."""

import unicodedata
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.grounding import is_grounded

words = st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1, max_size=12)
texts = st.text(max_size=60)
separators = st.sampled_from([" ", ", ", ". ", "\n", "!", "(", "\u00a0", "\u3000", "“", "😀", " — "])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ann", "I am Ann."),
        ("ann", "ANN!"),
        ("Ann", "(Ann)"),
        ("Mary Ann", "It's Mary\n  Ann here"),
        ("Ruaidhrí", unicodedata.normalize("NFD", "My name is RUAIDHRÍ")),
        (unicodedata.normalize("NFD", "Zoé"), "je m'appelle Zoé"),
        ("straße", "Ich wohne in der HAUPT-STRASSE"),
        ("İstanbul", "İstanbul'da ya\u015f\u0131yorum"),
        ("Istanbul", "istanbul, İSTANBUL"),
        ("I\u015f\u0131k", "Ad\u0131m I\u015eIK"),
        ("O'Brien", "call me O\u2019Brien"),
        ("민준", "제 이름은 민준이에요"),
        ("李雷", "我叫李雷,今年三十岁"),
        ("花子", "私の名前は花子です"),
        ("สมชาย", "ฉันชื่อสมชายครับ"),
        ("Ann", "我叫Ann吗"),
        ("राम", "मेरा नाम राम है"),
        ("José", "😀José🎉"),
        ("A1", "I live in flat A1"),
    ],
)
def test_a_string_that_the_text_holds_as_whole_words_is_grounded(value: str, text: str) -> None:
    assert is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ann", "Anna is here"),
        ("Ann", "Joann"),
        ("Ann", "Ann_1"),
        ("Jose", "I am José"),
        ("Jose", unicodedata.normalize("NFD", "I am José")),
        ("x", "x\u0302 is no x\u0302"),
        ("राम", "मेरा नाम रामू है"),
        ("\u0e01", "\u0e01\u0e35"),
        ("", "anything"),
        ("   ", "a   b"),
        ("!", "hello!"),
        ("😀", "😀"),
        ("Bob", ""),
        ("Ruaidhrí", "Hello, what is the square root of 9?"),
    ],
)
def test_a_string_that_is_not_there_or_only_a_part_of_a_word_is_not(value: str, text: str) -> None:
    assert not is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (20, "I am 20 years old"),
        (20, "20"),
        (20, "I am 20."),
        (20, "20yo"),
        (20, "aged-20"),
        (20.0, "I am 20"),
        (20, "\uff12\uff10歳です"),
        (20, "我20岁"),
        (20, "عمري ٢٠ سنة"),
        (20.5, "20.5 kg"),
        (20.5, "20,5 kg"),
        (1234, "1,234 steps"),
        (1234, "1.234 Schritte"),
        (1234567, "1.234.567"),
        (100000, "1,00,000 rupees"),
        (1234567, "1 234 567 km"),
        (1234567, "1\u202f234\u202f567 km"),
        (1234567, "1'234'567"),
        (1234567.5, "1.234.567,5"),
        (1234567.5, "1,234,567.5"),
        (-5, "it is -5 outside"),
        (-5, "it is \u22125 outside"),
        (2020, "in 2019-2020"),
        (2001, "born on 20.05.2001"),
        (9007199254740993, "my number is 9007199254740993"),
        (20, "20 300"),
    ],
)
def test_a_number_that_the_text_holds_whole_is_grounded(value: float, text: str) -> None:
    assert is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (20, "in 2020"),
        (20, "120"),
        (20, "20.5"),
        (20, "1,20"),
        (205, "20.5"),
        (20, "R20 and v20"),
        (20, "twenty"),
        (2, "x²"),
        (-5, "5"),
        (12220, "1.2.220"),
        (234, "1,234"),
        (9007199254740993, "9007199254740992"),
        (float("inf"), "1" * 400),
        (float("nan"), "nan"),
        (0, ""),
    ],
)
def test_a_number_that_is_not_there_or_only_a_part_of_one_is_not(value: float, text: str) -> None:
    assert not is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("20", "I am 20"),
        ("20", "I am 20."),
        ("20", "\uff12\uff10歳です"),
        ("20", "我20岁"),
        ("555-1234", "call 555-1234, please"),
        ("+49 170 1234567", "my number: +49 170 1234567"),
        ("01234", "01234 Dresden"),
        ("14:30", "at 14:30."),
        ("12.5", "about 12.5, or so"),
        ("2020-05", "since 2020-05"),
    ],
)
def test_a_string_of_digits_is_grounded_where_it_stands_as_it_is(value: str, text: str) -> None:
    assert is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("20", "in 2020"),
        ("20", "20.5"),
        ("20", "7/20"),
        ("20", "v20 and R2"),
        ("20", "20yo"),
        ("20", "twenty"),
        ("2020-05", "2020-05-01"),
        ("05-01", "2020-05-01"),
        ("14:30", "14:30:10"),
        ("555-1234", "555-12345"),
        ("555-1234", "5551234"),
        ("1234", "01234 Dresden"),
        ("01234", "1234"),
        ("2", "x²"),
    ],
)
def test_a_string_of_digits_is_not_grounded_by_other_or_longer_ones(value: str, text: str) -> None:
    assert not is_grounded(value, text)


@pytest.mark.parametrize("value", ["1990-05-17", "17/05/1990", "17.5.1990", "May 17, 1990", "17 mai 1990"])
@pytest.mark.parametrize(
    "text",
    [
        "born 1990-05-17",
        "born 17/05/1990.",
        "(5/17/1990)",
        "geb. 17. 5. 1990",
        "am 17. Mai 1990 geboren",
        "le 17 mai 1990",
        "el 17 de mayo de 1990",
        "on May 17th, 1990",
        "on the 17th of May, 1990",
        "17-MAY-1990",
        "1990年5月17日生まれ",
        "1990년 5월 17일",
        "17/05/90",
        "\uff11\uff19\uff19\uff10-05-17",
        "at 1990-05-17T10:00Z",
    ],
)
def test_a_date_is_grounded_by_the_same_day_in_any_notation(value: str, text: str) -> None:
    """Case 53: digits only, and still in the user's own text."""
    assert is_grounded(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1990-05-17", "born 1990-05-18"),
        ("1990-05-17", "born 17/06/1990"),
        ("1990-05-17", "born in 1990, on the 17th"),
        ("1990-05-17", "17 1990 05"),
        ("1990-05-17", "May 1990"),
        ("1990-05-17", "on May 17th"),
        ("1990-05-17", "17 Mayor 1990"),
        ("1990-05-17", "117/05/1990"),
        ("1990-05-17", "17/05/19901"),
        ("1990-05-17", "build 1990-05-17.4"),
        ("1990-05-17", "1.17.05.1990"),
        ("1990-05-17", "17/05/89"),
        ("1890-05-17", "17/05/90"),
        ("1990-02-30", "30/03/1990"),
        ("1990-13-40", "1990-12-40"),
        ("1990-05-06", "6-5/1990"),
        ("1990-05-17", "how old is someone born that year?"),
    ],
)
def test_a_date_is_not_grounded_by_another_day_or_a_part_of_one(value: str, text: str) -> None:
    assert not is_grounded(value, text)


@pytest.mark.parametrize("value", [True, False, None, ["Ann"], {"name": "Ann"}, (), b"Ann"])
def test_what_cannot_be_looked_for_is_never_grounded(value: Any) -> None:
    assert not is_grounded(value, "true false True False none null Ann name 1 0")


@given(value=st.lists(words, min_size=1, max_size=3).map(" ".join), left=separators, right=separators, around=texts)
def test_any_words_between_separators_are_grounded(value: str, left: str, right: str, around: str) -> None:
    text = f"{around}{left}{value}{right}{around}"

    assert is_grounded(value, text)
    assert is_grounded(value, unicodedata.normalize("NFD", text))
    assert is_grounded(unicodedata.normalize("NFD", value), text)


@given(value=words, text=texts)
def test_a_string_that_occurs_nowhere_is_never_grounded(value: str, text: str) -> None:
    def letters(of: str) -> str:
        bare = unicodedata.normalize("NFD", unicodedata.normalize("NFD", of).casefold())
        return "".join(c for c in bare if c.isalpha()).replace("\u0131", "i")

    if letters(value) not in letters(text):
        assert not is_grounded(value, text)


@given(value=st.text(st.characters(categories=["Lu", "Ll"]), min_size=1), tail=st.characters(categories=["Ll", "Nd"]))
def test_a_word_is_not_grounded_by_a_longer_one(value: str, tail: str) -> None:
    unspaced = is_grounded("a", f"a{tail}") or is_grounded("a", f"{value[-1]}a")

    assert unspaced or not is_grounded(value, f"{value}{tail}")


@given(value=st.integers(min_value=0, max_value=10**15), left=separators, right=separators)
def test_any_number_between_separators_is_grounded_with_and_without_marks(value: int, left: str, right: str) -> None:
    for shown in (f"{value}", f"{value:,}", f"{value:,}".replace(",", "."), f"{value:,}".replace(",", "\u202f")):
        assert is_grounded(value, f"x{left}{shown}{right}y")


@given(value=st.integers(min_value=0, max_value=10**9), digits=st.integers(min_value=1, max_value=9))
def test_a_number_is_not_grounded_by_a_longer_one(value: int, digits: int) -> None:
    assert not is_grounded(value, f"I have {digits}{value} and {value + 1}{digits} of them")


@given(day=st.dates(min_value=date(1000, 1, 1)), left=separators, right=separators)
def test_any_date_between_separators_is_grounded_and_the_days_beside_it_are_not(
    day: date, left: str, right: str
) -> None:
    text = f"x{left}{day.day}.{day.month}.{day.year}{right}y, or {day:%B} {day.day}, {day.year}"

    assert is_grounded(day.isoformat(), text)
    for other in (day + timedelta(days=1), day - timedelta(days=1)) if date.min < day < date.max else ():
        swapped = (other.year, other.day, other.month) == (day.year, day.month, day.day)
        assert swapped or not is_grounded(other.isoformat(), text)


@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text(), text=texts)
def test_any_value_and_any_text_are_answered(value: Any, text: str) -> None:
    assert isinstance(is_grounded(value, text), bool)
