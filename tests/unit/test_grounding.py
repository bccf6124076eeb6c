"""Grounding: a value is kept only where the text holds it. Examples by script, and properties over any text."""

import unicodedata
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
        ("20", "I am 20"),
        ("2020-05-01", "2020-05-01"),
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


@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text(), text=texts)
def test_any_value_and_any_text_are_answered(value: Any, text: str) -> None:
    assert isinstance(is_grounded(value, text), bool)
