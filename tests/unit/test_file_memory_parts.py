"""The parts of a file memory that touch no file: names, the index, edits of a text."""

import unicodedata

import pytest

from providers.file_memory_index import MAX_LISTED, MAX_WORDS, index_text
from providers.file_memory_names import (
    MAX_NAME_BYTES,
    NameRefused,
    checked_name,
    description_of,
    is_hidden,
    key_of,
    shown,
)
from providers.text_edits import EditError, LineEdit, replaced, with_lines

TAKEN = [
    "notes.md", "Notes", "a b.txt", "été.md", "備忘錄.md", "v1..2.md", "-x", "_x", "a'b", "con2.md", "description.md",
    "x" * MAX_NAME_BYTES, "é" * (MAX_NAME_BYTES // 2),
]  # fmt: skip
REFUSED = [
    "", " ", "a/b", "a\\b", "/x", "../x", "..\\x", ".", "..", ".x", "~x", "x.", "x ", " x", "a\0b", "a\nb", "a\x7fb",
    "a\u202eb", "a\u200bb", "\ud800", "C:x", "a:b", "a*", "a?", "con", "CON", "nul.md", "Com1.txt", "lpt9", "aux .md",
    "memories.md", "MEMORIES.MD", "\uff4demories.md", "x_description.md", "X_DESCRIPTION.md", "_description.md",
    "x" * (MAX_NAME_BYTES + 1), "é" * (MAX_NAME_BYTES // 2) + "x", "x" * 1_000_000,
]  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert checked_name(name) == name
    assert not is_hidden(name)


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name[:20]))
def test_any_other_name_is_refused(name: str) -> None:
    """Case 48."""
    with pytest.raises(NameRefused):
        checked_name(name)


def test_two_spellings_of_one_name_are_one_name() -> None:
    assert checked_name(unicodedata.normalize("NFD", "été.md")) == unicodedata.normalize("NFC", "été.md")
    assert key_of("ÉTÉ.MD") == key_of(unicodedata.normalize("NFD", "été.md"))
    assert key_of("m².md") != key_of("m2.md")


def test_files_that_differ_have_descriptions_that_differ_and_are_hidden() -> None:
    names = ["notes.md", "notes.txt", "notes.txt.md", "notes", "notes_description.txt", "notes.md.md"]
    descriptions = [description_of(name) for name in names]

    assert description_of("notes.md") == "notes_description.md"
    assert len(set(descriptions)) == len(names)
    assert all(map(is_hidden, descriptions))
    assert all(len(description_of("x" * MAX_NAME_BYTES + end).encode()) <= 255 for end in ("", ".md"))


def test_a_name_is_shown_on_one_line_and_not_too_long() -> None:
    assert shown("a\n\0b") == "a\ufffd\ufffdb"
    assert shown("x" * 300) == "x" * 80 + "…"


def test_the_index_lists_files_by_alphabet_with_their_descriptions_on_one_line() -> None:
    text = index_text(["b.md", "A.md", "c.md"], {"A.md": " first\n\n line ", "c.md": "x" * (MAX_WORDS + 1)})

    assert text.splitlines()[2:] == ["- A.md: first line", "- b.md", "- c.md: " + "x" * (MAX_WORDS - 1) + "…"]


@pytest.mark.parametrize(("count", "says_more"), [(MAX_LISTED, False), (MAX_LISTED + 10, True)])
def test_the_index_lists_fifty_files_at_most(count: int, says_more: bool) -> None:
    """Case 48."""
    text = index_text([f"{'Nn'[number % 2]}{number:02}.md" for number in reversed(range(count))], {})
    lines = [line for line in text.splitlines() if line.startswith("- ")]

    assert [int(line[3:5]) for line in lines] == list(range(50))
    assert ("10 more files" in text) is says_more


def test_words_are_replaced_where_they_occur_once_or_wherever_they_occur() -> None:
    assert replaced("a b", "b", "c", replace_all=False) == ("a c", 1)
    assert replaced("a b b", "b", "bb", replace_all=True) == ("a bb bb", 2)


@pytest.mark.parametrize(("old", "why"), [("", "empty"), ("x", "does not occur"), ("b", "occurs 2 times")])
def test_words_that_are_not_there_once_are_refused(old: str, why: str) -> None:
    with pytest.raises(EditError, match=why):
        replaced("a b b", old, "c", replace_all=False)


def edit(number: int, line: str, expected: str | None = None) -> LineEdit:
    return LineEdit(line_number=number, new_line=line, expected_line=expected)


@pytest.mark.parametrize(
    ("text", "edits", "result"),
    [
        ("a\nb\nc\n", [edit(2, "B")], "a\nB\nc\n"),
        ("a\nb\nc\n", [edit(2, "B\n")], "a\nB\nc\n"),
        ("a\nb\nc", [edit(3, "C\n"), edit(1, "A")], "A\nb\nC"),
        ("a\nb\nc", [edit(1, ""), edit(3, "")], "b\n"),
        ("a\nb", [edit(1, "x\ny")], "x\ny\nb"),
        ("a\nb", [edit(1, "\n")], "\nb"),
        ("a\rb\u2028c\nd", [edit(2, "D", "d")], "a\rb\u2028c\nD"),
        ("a\n", [edit(1, "b", "a\n")], "b\n"),
    ],
)
def test_lines_are_replaced_or_removed_and_only_a_newline_ends_one(
    text: str, edits: list[LineEdit], result: str
) -> None:
    assert with_lines(text, edits) == result


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([], "no edits"),
        ([edit(0, "x")], "line 0 is not there; it has 2 lines"),
        ([edit(3, "x")], "line 3 is not there"),
        ([edit(1, "x"), edit(1, "y")], "twice"),
        ([edit(1, "x"), edit(2, "y", "c")], "not what was expected"),
    ],
)
def test_lines_that_cannot_all_be_replaced_are_refused(edits: list[LineEdit], why: str) -> None:
    with pytest.raises(EditError, match=why):
        with_lines("a\nb\n", edits)
