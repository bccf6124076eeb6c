"""Finds in a text what is to be replaced, and shows people what that changes. It asks no editor."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, Field

from .api.clean_text import clean_text
from .api.editor import TextChange, changed
from .text_edits import EditError
from .visible_text import seen

MAX_OLD: Final = 1_000_000
"""Characters of all that one call looks for."""
MAX_SHOWN_LINES: Final = 150
"""Lines that people are shown of one call; nobody can consent to more than that at once."""
MAX_SHOWN: Final = 12_000
"""Characters of them."""
MAX_AROUND: Final = 160
"""Characters that are shown of a line that stays."""

_AROUND: Final = 2
"""Lines before and after a change that are shown with it."""
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_GAP: Final = re.compile(r"(?<=\S) {24,}")
"""What could push the rest of a line out of sight."""
_ESCAPE: Final = "\N{MATHEMATICAL LEFT ANGLE BRACKET}"
"""Begins each escape, and nothing else: where it stands in a text it is escaped too."""


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
        EditError: something does not occur, or too often, or is too long; two of them meet; nothing would change.
    """
    if sum(len(edit.old_string) for edit in edits) > MAX_OLD:
        raise EditError(f"the edits look for more than {MAX_OLD} characters; make them smaller")
    line_end = re.search(r"\r\n?|\n", text)
    end = line_end.group() if line_end else "\n"
    plain = _plain(text)
    # Where the plain text has one character for two of the text.
    pairs = [found.start() - before for before, found in enumerate(re.finditer("\r\n", text))]
    changes: list[TextChange] = []
    for edit in edits:
        old, new = _plain(clean_text(edit.old_string)), _plain(clean_text(edit.new_string)).replace("\n", end)
        for at in _places(plain, old, replace_all=edit.replace_all):
            start, stop = (offset + bisect_left(pairs, offset) for offset in (at, at + len(old)))
            changes.append(TextChange(start, stop, new))
        if len(changes) > len(text) > 0:
            break  # Some of so many meet, and there is no need to have them all.
    changes.sort(key=lambda change: change.start)
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


def _plain(text: str) -> str:
    """The text with its lines ended by newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _places(text: str, old: str, *, replace_all: bool) -> Iterator[int]:
    if not old and text:
        raise EditError("old_string is empty, but the document is not")
    # Not a regular expression: at worst one takes as many steps as both lengths multiplied, and no other thread runs.
    at = text.find(old)
    if at < 0:
        raise EditError("old_string does not occur in it")
    if not replace_all and old and text.find(old, at + 1) >= 0:
        raise EditError("old_string occurs more than once; give more of the text around it, or set replace_all")
    yield at
    while replace_all and old and (at := text.find(old, at + len(old))) >= 0:
        yield at


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
    for group, first, last in _groups(lines, starts, changes):
        begin = starts[first]
        moved = [TextChange(one.start - begin, one.end - begin, one.text) for one in group]
        old, new = lines[first:last], _LINES.findall(changed(text[begin : starts[last]], moved))
        before = _alike(old, new)
        behind = _alike(old[before:][::-1], new[before:][::-1])
        yield _Hunk(first + before, last - behind, new[before : len(new) - behind])


def _groups(
    lines: Sequence[str], starts: Sequence[int], changes: Sequence[TextChange]
) -> Iterator[tuple[list[TextChange], int, int]]:
    """Changes of one line, or of lines side by side: with the first that they touch, and the one behind the last."""
    group: list[TextChange] = []
    first = last = line = 0
    final = len(starts) - 1
    for change in changes:
        while line + 1 < final and starts[line + 1] <= change.start:
            line += 1
        # Behind a lone CR, what begins with LF now makes one line end of both.
        touched = line - 1 if line and change.start == starts[line] and lines[line - 1].endswith("\r") else line
        if group and touched > last:
            yield group, first, last
            group = []
        if not group:
            first = touched
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
    text = "".join(_visible_characters(line.rstrip("\r\n")[: limit + 1]))
    text = _GAP.sub(lambda gap: f"{_ESCAPE}{len(gap[0])} spaces\N{MATHEMATICAL RIGHT ANGLE BRACKET}", text)
    return text if len(text) <= limit else f"{text[:limit]}[…]"


def _visible_characters(line: str) -> Iterator[str]:
    for character, is_shown in seen(line):
        if is_shown and character != _ESCAPE:
            yield character
        elif character == "\t":
            yield "\N{RIGHTWARDS ARROW}   "
        else:
            yield f"{_ESCAPE}U+{ord(character):04X}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
