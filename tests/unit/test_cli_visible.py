"""Text that others wrote, as it is shown to a person who decides by it."""

import pytest

from sidecar.cli.visible import quoted, shortened, visible, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本", "plain é 日本"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
        ("\x9b31m", "\\x9b31m"),
        ("rm \u202etxt.exe", "rm \\u202etxt.exe"),
        ("a\u200bb\u00a0c\u2028", "a\\u200bb\\xa0c\\u2028"),
        ("\u3164\u2800", "\\u3164\\u2800"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_that_cannot_be_seen_stays_so(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_json_is_one_line_that_shows_everything() -> None:
    assert visible_json({"a": "é\n\x1b\u202e"}) == '{"a": "é\\n\\u001b\\u202e"}'


def test_a_long_text_shows_both_its_ends_and_how_much_is_missing() -> None:
    text = "a" * 5_000 + "&& rm -rf /"
    short = shortened(text, 300)
    assert short.startswith("a" * 200 + " [… 4,711 characters …] ")
    assert short.endswith("&& rm -rf /")
    assert shortened("x" * 300, 300) == "x" * 300


def test_quoted_lines_cannot_pass_for_ours() -> None:
    assert quoted("fine\n? may it be called? y\x1b[A\u2028\x0cmore\nand\nmore", 4, 100) == [
        "  │ fine",
        "  │ ? may it be called? y\\x1b[A",
        "  │ ",
        "  │ more",
        "  │ [… 2 lines …]",
    ]
    assert quoted("", 4, 100) == []


def test_what_hides_in_marks_and_selectors_is_seen() -> None:
    assert visible("a\ufe01b\U000e0101c\u034f") == "a\\ufe01b\\U000e0101c\\u034f"
    assert visible("e\u0301 ก็ नी") == "e\u0301 ก็ नी"
    assert visible("e" + "\u0301" * 5).count("\\u0301") == 3
