"""Finds in a text what is to be replaced, and shows people what that changes. It asks no editor."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, Field

from .api.clean_text import clean_text
from .api.editor import TextChange, changed
from .text_edits import EditError

MAX_SHOWN_LINES: Final = 150
"""Lines that people are shown of one call; nobody can consent to more than that at once."""
MAX_SHOWN: Final = 12_000
"""Characters of them."""
MAX_AROUND: Final = 160
"""Characters that are shown of a line that stays."""

_AROUND: Final = 2
"""Lines before and after a change that are shown with it."""
# What ends a line in LSP; each of them whole, so that nothing is cut between the two characters of one.
_LINE_END: Final = r"(?:\r\n|(?<!\r)\n|\r(?!\n))"
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LOOKS_EMPTY: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class Replacement(BaseModel):
    """One text to put in another one's place."""

    old_string: Annotated[
        str,
        Field(description="The text to replace, exactly as it stands in the document. Empty: the document is empty."),
    ]
    new_string: Annotated[str, Field(description="What to put in its place.")]
    replace_all: Annotated[bool, Field(description="Replace it wherever it occurs; otherwise it must occur once.")] = (
        False
    )


def changes_of(text: str, edits: Sequence[Replacement]) -> list[TextChange]:
    """Where a text changes, in order. Any line end matches any other; new lines end as the text's do.

    Raises:
        EditError: something does not occur, or too often; two of them meet; nothing would change.
    """
    line_end = re.search(_LINE_END, text)
    changes = sorted(
        (change for edit in edits for change in _changes(text, edit, line_end.group() if line_end else "\n")),
        key=lambda change: change.start,
    )
    if any(after.start < before.end for before, after in pairwise(changes)):
        raise EditError("two of the edits change the same place")
    if all(text[change.start : change.end] == change.text for change in changes):
        raise EditError("that would change nothing")
    return changes


def shown(uri: str, text: str, changes: Sequence[TextChange]) -> str:
    """What people are shown of changes: lines that go, lines that come, a few around them.

    What changes is there to the last character, and no character is invisible, or moves others.

    Raises:
        EditError: that is more than people can be asked to read.
    """
    lines = [_visible(uri)]
    length = 0
    for line in _shown_lines(text, changes):
        lines.append(line)
        length += len(line)
        if len(lines) > MAX_SHOWN_LINES or length > MAX_SHOWN:
            raise EditError(
                f"that is more than the user can be shown, {MAX_SHOWN_LINES} lines or {MAX_SHOWN} characters with "
                "what stands around; change it in several smaller calls"
            )
    return "\n".join(lines)


def _changes(text: str, edit: Replacement, line_end: str) -> Iterator[TextChange]:
    old, new = (re.sub(r"\r\n?", "\n", clean_text(part)) for part in (edit.old_string, edit.new_string))
    if not old and text:
        raise EditError("old_string is empty, but the document is not")
    pattern = re.compile(_LINE_END.join(map(re.escape, old.split("\n"))))
    first = pattern.search(text)
    if first is None:
        raise EditError("old_string does not occur in it")
    if not edit.replace_all and first.end() and pattern.search(text, first.start() + 1):
        raise EditError("old_string occurs more than once; give more of the text around it, or set replace_all")
    found = pattern.finditer(text) if edit.replace_all else (first,)
    return (TextChange(one.start(), one.end(), new.replace("\n", line_end)) for one in found)


class _Hunk(NamedTuple):
    first: int
    """The first line that goes, or before which some come; counted from 0."""
    last: int
    """The first one behind them that stays."""
    new: list[str]


def _shown_lines(text: str, changes: Sequence[TextChange]) -> Iterator[str]:
    lines: list[str] = _LINES.findall(text)
    hunks = list(_hunks(text, lines, changes))
    told = 0
    for hunk, following in zip(hunks, [*(one.first for one in hunks[1:]), len(lines)], strict=False):
        before = max(hunk.first - _AROUND, told)
        told = min(hunk.last + _AROUND, following)
        yield f"@@ line {hunk.first + 1} @@"
        yield from (f"  {_visible(line, MAX_AROUND)}" for line in lines[before : hunk.first])
        yield from (f"- {_visible(line)}" for line in lines[hunk.first : hunk.last])
        yield from (f"+ {_visible(line)}" for line in hunk.new)
        yield from (f"  {_visible(line, MAX_AROUND)}" for line in lines[hunk.last : told])


def _hunks(text: str, lines: Sequence[str], changes: Sequence[TextChange]) -> Iterator[_Hunk]:
    """The lines that differ, place by place."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for group, first, last in _groups(changes, starts):
        begin = starts[first]
        moved = [TextChange(one.start - begin, one.end - begin, one.text) for one in group]
        old, new = lines[first:last], _LINES.findall(changed(text[begin : starts[last]], moved))
        before = _alike(old, new)
        behind = _alike(old[before:][::-1], new[before:][::-1])
        yield _Hunk(first + before, last - behind, new[before : len(new) - behind])


def _groups(changes: Sequence[TextChange], starts: Sequence[int]) -> Iterator[tuple[list[TextChange], int, int]]:
    """Changes of one line, or of lines side by side: with the first that they touch, and the one behind the last."""
    group: list[TextChange] = []
    first = last = line = 0
    final = len(starts) - 1
    for change in changes:
        while line + 1 < final and starts[line + 1] <= change.start:
            line += 1
        if group and line > last:
            yield group, first, last
            group = []
        if not group:
            first = line
        while line + 1 < final and starts[line + 1] < change.end:
            line += 1
        # A change that takes a line's end away, or adds one at it, joins the next line to this one.
        last = min(line + (2 if change.end == starts[min(line + 1, final)] else 1), final)
        group.append(change)
    if group:
        yield group, first, last


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many of the first lines are the same in both."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _visible(line: str, limit: int = MAX_SHOWN + 1) -> str:
    text = "".join(map(_visible_character, line.rstrip("\r\n")[: limit + 1]))
    return text if len(text) <= limit else f"{text[:limit]}[…]"


def _visible_character(character: str) -> str:
    if character == "\t":
        return "\N{RIGHTWARDS ARROW}   "
    if character.isprintable() and character not in _LOOKS_EMPTY:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
