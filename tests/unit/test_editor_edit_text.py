"""Edits of an open document: where they land, what they make of it, and what a person is shown of that."""

import re
import time
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from providers.api.editor import TextChange, changed
from providers.editor_edit_text import MAX_OLD, MAX_SHOWN, MAX_SHOWN_LINES, Replacement, changes_of, shown
from providers.text_edits import EditError
from sidecar.lsp.position import position_at, replace

LINES = st.lists(st.text("ab😋", max_size=3), max_size=8)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])
URI = "file:///a"


def edit(old: str, new: str, *, replace_all: bool = False) -> Replacement:
    return Replacement(old_string=old, new_string=new, replace_all=replace_all)


@st.composite
def changes(draw: st.DrawFn, text: str) -> list[TextChange]:
    """Some changes that do not meet, none of which cuts a line's end in two."""
    whole = [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n"]
    cuts = sorted(draw(st.lists(st.sampled_from(whole), max_size=6, unique=True)))
    ends = draw(LINE_END)
    return [TextChange(start, end, ends.join(draw(LINES))) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]


@st.composite
def changed_texts(draw: st.DrawFn) -> tuple[str, list[TextChange]]:
    text = draw(LINE_END).join(draw(LINES))
    return text, draw(changes(text))


# ---- where edits land ---------------------------------------------------------------------------------------------


@given(before=LINES, old=LINES, after=LINES, new=LINES, end=LINE_END, sent=LINE_END)
def test_what_occurs_once_is_replaced_whatever_ends_its_lines(
    before: list[str], old: list[str], after: list[str], new: list[str], end: str, sent: str
) -> None:
    marked = [*old, "!"]
    text = end.join([*before, *marked, *after])

    made = changed(text, changes_of(text, [edit(sent.join(marked), sent.join([*new, "?"]))]))

    assert made == end.join([*before, *new, "?", *after] if end in text else ["\n".join([*new, "?"])])


@given(text=st.text("ab\n", min_size=1, max_size=12), old=st.text("ab\n", min_size=1, max_size=2))
def test_replacing_all_is_what_it_is_for_texts(text: str, old: str) -> None:
    assume(old in text)
    assert changed(text, changes_of(text, [edit(old, "c", replace_all=True)])) == text.replace(old, "c")


@given(text=st.text("ab\r\n", max_size=12), old=st.text("ab\n", min_size=1, max_size=3))
def test_an_edit_never_cuts_a_line_end_in_two_and_is_refused_where_it_is_not_clear(text: str, old: str) -> None:
    units = re.findall(r"\r\n|[^\r]|\r", text)
    plain = ["\n" if unit in ("\r\n", "\r") else unit for unit in units]
    places = [at for at in range(len(plain)) if "".join(plain[at : at + len(old)]) == old]
    try:
        (change,) = changes_of(text, [edit(old, "c")])
    except EditError:
        assert len(places) != 1
    else:
        (at,) = places
        assert change.start == len("".join(units[:at]))
        assert text[change.start : change.end] == "".join(units[at : at + len(old)])


@given(text=st.text("a\r\n", max_size=12), old=st.text("a\r\n", min_size=1, max_size=3))
def test_replacing_all_takes_whole_line_ends_of_any_kind(text: str, old: str) -> None:
    units = re.findall(r"\r\n|[^\r]|\r", text)
    plain = "".join("\n" if unit in ("\r\n", "\r") else unit for unit in units)
    sought = old.replace("\r\n", "\n").replace("\r", "\n")
    assume(sought in plain)
    expected, at = "", 0
    while at < len(plain):
        found = plain.startswith(sought, at)
        expected += "c" if found else units[at]
        at += len(sought) if found else 1
    assert changed(text, changes_of(text, [edit(old, "c", replace_all=True)])) == expected


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        ("\r\n" * 400_000, [edit("\n" * 5_000 + "z", "")]),
        ("a" * 400_000, [edit("a" * 5_000 + "z" + "a" * 5_000, "")]),
        ("a\r\n" * 50_000, [edit("a", "b", replace_all=True), edit("z", "")]),
        ("a" * 50_000, [edit("a", "\n" * 500_000, replace_all=True), edit("z", "")]),
        ("a" * 50_000, [edit("a", "", replace_all=True)] * 90),
    ],
)
def test_no_text_and_no_edits_take_long(text: str, edits: list[Replacement]) -> None:
    began = time.process_time()
    with pytest.raises(EditError):
        changes_of(text, edits)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ([edit("x", "y")], "does not occur"),
        ([edit("a", "y")], "more than once"),
        ([edit("aa", "y")], "more than once"),
        ([edit("", "y")], "is empty"),
        ([edit("b c", "y"), edit("c d", "y")], "the same place"),
        ([edit("b", "x"), edit("b", "y")], "the same place"),
        ([edit("b", "b"), edit("c", "c")], "change nothing"),
    ],
)
def test_edits_that_do_not_fit_are_refused_and_say_why(edits: list[Replacement], problem: str) -> None:
    with pytest.raises(EditError, match=problem):
        changes_of("aaa b c d", edits)


def test_what_one_call_looks_for_has_a_limit() -> None:
    text = "a" * (MAX_OLD - 1) + "b"
    assert changes_of(text, [edit(text[:-1], ""), edit("b", "c")]) == [
        TextChange(0, MAX_OLD - 1, ""), TextChange(MAX_OLD - 1, MAX_OLD, "c"),
    ]  # fmt: skip
    with pytest.raises(EditError, match=f"more than {MAX_OLD} characters"):
        changes_of(text, [edit(text, ""), edit("b", "c")])


def test_edits_that_stand_side_by_side_are_both_made_in_the_text_as_it_was() -> None:
    text = "one two"
    assert changed(text, changes_of(text, [edit(" two", " one"), edit("one", "two")])) == "two one"


def test_an_empty_document_takes_a_first_text() -> None:
    assert changed("", changes_of("", [edit("", "a\nb")])) == "a\nb"


def test_halves_of_characters_and_nul_do_not_get_into_a_document() -> None:
    assert changed("a", changes_of("a", [edit("a", "\ud800\0\ud83d\ude0b")])) == "\ufffd\ufffd😋"


@given(case=changed_texts(), encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_an_editor_that_makes_the_changes_by_their_positions_gets_the_same_text(
    case: tuple[str, list[TextChange]], encoding: str
) -> None:
    text, made = case
    by_editor = text
    for one in reversed(made):
        start, end = (position_at(text, offset, encoding) for offset in (one.start, one.end))
        by_editor = replace(by_editor, start, end, one.text, encoding)
    assert by_editor == changed(text, made)


# ---- what is shown ------------------------------------------------------------------------------------------------


@given(case=changed_texts())
@example(case=("a\nb", [TextChange(1, 2, "")]))
@example(case=("a\nb\nc\n", [TextChange(0, 1, ""), TextChange(4, 5, "d\n")]))
@example(case=("a\rb", [TextChange(2, 3, "\nc")]))
@example(case=("a\rb\nc", [TextChange(0, 1, ""), TextChange(2, 3, "")]))
def test_what_is_shown_makes_the_new_lines_of_the_old_ones(case: tuple[str, list[TextChange]]) -> None:
    text, made = case
    lines = _lines(text)
    _, *rest = shown(URI, text, made).split("\n")
    moved = 0
    for hunk in re.split(r"^@@ line ", "\n".join(rest), flags=re.MULTILINE)[1:]:
        head, *body = hunk.split("\n")
        old = [line[2:] for line in body if line.startswith("- ")]
        new = [line[2:] for line in body if line.startswith("+ ")]
        at = int(head.removesuffix(" @@")) - 1 + moved
        assert lines[at : at + len(old)] == old
        lines[at : at + len(old)] = new
        moved += len(new) - len(old)
    assert lines == _lines(changed(text, made))


def test_a_few_lines_around_are_shown_and_none_of_another_change() -> None:
    text = "".join(f"{number}\n" for number in range(1, 10))
    made = changes_of(text, [edit("2\n", ""), edit("9", "nine\nten")])
    assert shown(URI, text, made) == (
        "file:///a\n@@ line 2 @@\n  1\n- 2\n  3\n  4\n@@ line 9 @@\n  7\n  8\n- 9\n+ nine\n+ ten"
    )


ODD = st.sampled_from("\\ ⟨⟩U+0a\u034f\u0301\u0e31\u180b\u180f\u200d\u202e\u20dd\ufe0f\U000e0100😋กé")


@given(text=st.text(st.characters(exclude_characters="\r\n\t") | ODD, min_size=1, max_size=50))
def test_whatever_is_edited_is_shown_without_anything_invisible_and_is_told_from_any_other(text: str) -> None:
    seen = new_line(text)
    assert seen.isprintable()
    assert re.sub("⟨U[+]([0-9A-F]+)⟩", lambda escape: chr(int(escape[1], 16)), seen) == text


@pytest.mark.parametrize(
    "character", [*"\u034f\u115f\u17b4\u180b\u180e\u180f\u200d\u202e\ufe00\ufe0f\U000e0100\U000e01ef"]
)
def test_what_has_no_ink_is_always_escaped(character: str) -> None:
    assert new_line(f"a{character}b") == f"a⟨U+{ord(character):04X}⟩b"


@pytest.mark.parametrize(
    "word",
    [
        unicodedata.normalize("NFD", "Tiếng Việt, é, Å"), "ที่นี่น้ำ", "مُحَمَّد", "हिन्दी में क्षि", "שָׁלוֹם", "が",
        unicodedata.normalize("NFD", "が한"), "1\u20e3", "\\u202e", "日本語 → 😋",
    ],
)  # fmt: skip
def test_what_people_write_is_shown_as_it_is(word: str) -> None:
    assert new_line(word) == word


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("e" + "\u0301" * 4, "e\u0301\u0301⟨U+0301⟩⟨U+0301⟩"),
        ("\u0301e", "⟨U+0301⟩e"),
        (" \u0301", " ⟨U+0301⟩"),
        ("\t\u0301", "→   ⟨U+0301⟩"),
        (".\u20dd", ".⟨U+20DD⟩"),
        ("a\u0e31", "a⟨U+0E31⟩"),
        ("a\u200b\u0301", "a⟨U+200B⟩⟨U+0301⟩"),
        ("e\ufe0f\u0301", "e⟨U+FE0F⟩⟨U+0301⟩"),
        ("का\u0902\u0902\u0902", "का\u0902\u0902⟨U+0902⟩"),
        ("❤\ufe0f👩\u200d🚀", "❤⟨U+FE0F⟩👩⟨U+200D⟩🚀"),
        ("⟨U+202E⟩", "⟨U+27E8⟩U+202E⟩"),
        ("\ud800", "⟨U+D800⟩"),
    ],
)
def test_marks_that_stand_nowhere_or_in_heaps_are_escaped_and_no_text_looks_like_that(text: str, seen: str) -> None:
    assert new_line(text) == seen


def test_a_line_that_changes_is_shown_whole_and_one_that_stays_in_part() -> None:
    text = f"{'s' * 1_000}\n{'o' * 1_000}\n"
    made = changes_of(text, [edit("o" * 1_000, "n" * 1_000 + "\t\u200b")])
    assert shown(URI, text, made).split("\n")[2:] == [
        f"  {'s' * 160}[…]", f"- {'o' * 1_000}", f"+ {'n' * 1_000}→   ⟨U+200B⟩",
    ]  # fmt: skip


def test_what_stands_far_to_the_right_is_not_out_of_sight() -> None:
    made = [TextChange(0, 0, f"x = 1  # fine{' ' * 300}; steal()\n{' ' * 40}y = 2\n")]
    assert shown(URI, "", made).split("\n")[2:] == ["+ x = 1  # fine⟨300 spaces⟩; steal()", f"+ {' ' * 40}y = 2"]


@pytest.mark.parametrize(
    ("new", "fits"),
    [
        ("n\n" * (MAX_SHOWN_LINES - 2), True),
        ("n\n" * (MAX_SHOWN_LINES - 1), False),
        ("n" * (MAX_SHOWN - 20), True),
        ("n" * (MAX_SHOWN + 1), False),
        ("\u200b" * (MAX_SHOWN // 5), False),
    ],
)
def test_more_than_people_can_be_asked_to_read_is_refused_whole(new: str, fits: bool) -> None:
    made = [TextChange(0, 0, new)]
    if fits:
        assert "+ n" in shown(URI, "", made)
    else:
        with pytest.raises(EditError, match="several smaller calls"):
            shown(URI, "", made)


def test_many_places_are_refused_as_one_long_one_is() -> None:
    text = "a\n\n\n\n\n\n" * 1_000
    with pytest.raises(EditError, match="several smaller calls"):
        shown(URI, text, changes_of(text, [edit("a", "b", replace_all=True)]))


def new_line(text: str) -> str:
    """How a line that is put into an empty document is shown."""
    return shown("file:///a", "", [TextChange(0, 0, text)]).removeprefix("file:///a\n@@ line 1 @@\n+ ")


def _lines(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)]
