"""Edits of a text by words or by lines, all of them or none. It reads and writes no file."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field


class EditError(Exception):
    """An edit does not fit the text; nothing was changed. The text is for models."""


class LineEdit(BaseModel):
    """A line to put in another one's place."""

    line_number: Annotated[int, Field(description="Which line, from 1 on.")]
    new_line: Annotated[
        str, Field(description="What stands there instead; it keeps its line break. Empty: the line goes.")
    ]
    expected_line: Annotated[
        str | None, Field(description="What you believe stands there now; if it does not, nothing is changed.")
    ] = None


def replaced(text: str, old: str, new: str, *, replace_all: bool) -> tuple[str, int]:
    """The text with other words in it, and how often they were put there.

    Raises:
        EditError: the old words are not there, or more than once though not all are meant.
    """
    if not old:
        raise EditError("old_string is empty")
    count = text.count(old)
    if count == 0:
        raise EditError("old_string does not occur in it")
    if count > 1 and not replace_all:
        raise EditError(f"old_string occurs {count} times; give more of the text around it, or set replace_all")
    return text.replace(old, new), count


def with_lines(text: str, edits: Sequence[LineEdit]) -> str:
    """The text with other lines in it. Only a newline ends a line; one that is replaced keeps its end.

    Raises:
        EditError: there are no edits, or one names no line, a line that another one names, or a line that is not as
            it was expected.
    """
    if not edits:
        raise EditError("there are no edits")
    lines = text.split("\n")
    count = len(lines) if lines[-1] else len(lines) - 1
    seen: set[int] = set()
    for edit in edits:
        number = edit.line_number
        if not 1 <= number <= count:
            raise EditError(f"line {number} is not there; it has {count} lines")
        if number in seen:
            raise EditError(f"line {number} is edited twice")
        seen.add(number)
        if edit.expected_line is not None and edit.expected_line.removesuffix("\n") != lines[number - 1]:
            raise EditError(f"line {number} is not what was expected; read it again")
    pieces = [line + "\n" for line in lines[:-1]] + [lines[-1]]
    for edit in edits:
        end = "\n" if pieces[edit.line_number - 1].endswith("\n") else ""
        pieces[edit.line_number - 1] = edit.new_line.removesuffix("\n") + end if edit.new_line else ""
    return "".join(pieces)
