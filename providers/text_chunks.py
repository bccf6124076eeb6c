"""Cuts a text into chunks that are searched and shown one by one. Pure; it reads no files.

A chunk ends where a section ends, else between paragraphs, else after a sentence or a line, else between words; only
where there is none of these is it cut anywhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SIZE: Final = 1_200
"""Most characters of a chunk, what it repeats of the one before it included."""
OVERLAP: Final = 150
"""Most characters that a chunk repeats of the one before it, in the same section."""
MAX_HEADING: Final = 120
"""Characters of one heading in a chunk's place; a longer one is cut."""
PAGE_END: Final = "\f"
"""What ends a page of a text."""

_LINE: Final = re.compile(r"[^\n\f]*[\n\f]?")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_PARAGRAPH_END: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END: Final = re.compile("[.!?][\"')\\]]*\\s+|[\u3002\uff01\uff1f\u2026]+|\\n")
_BLANK: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text. It neither begins nor ends with a blank."""

    start: int
    """Its first character's place in the text."""
    end: int
    """Behind its last character."""
    headings: tuple[str, ...] = ()
    """The headings that it stands below, the outermost first."""


@dataclass(slots=True)
class _Section:
    start: int
    end: int
    headings: tuple[str, ...]
    has_body: bool


def chunks(text: str, *, has_headings: bool = True, size: int = SIZE, overlap: int = OVERLAP) -> list[Chunk]:
    """The chunks of a text, in its order. Every character that is no blank is in one of them.

    Args:
        text: Lines end with line feeds; a form feed ends a page, and a chunk.
        has_headings: Whether a line that begins with `#`, outside of fenced code, is a heading.
        size: Most characters of a chunk.
        overlap: Most characters that a chunk repeats of the one before it.

    Raises:
        ValueError: `overlap` is negative, or takes half of `size` or more.
    """
    if not 0 <= overlap * 2 < size:
        raise ValueError("the overlap must be less than half of the size")
    found: list[Chunk] = []
    for section in _sections(text, has_headings):
        first = len(found)
        for start, end in _packed(text, section.start, section.end, size - overlap):
            if text[start:end].isspace():
                continue
            if len(found) > first:
                start = _back(text, start, max(section.start, start - overlap))
            chunk = Chunk(*_trimmed(text, start, end), section.headings)
            if len(found) > first and found[-1].start >= chunk.start:
                found.pop()  # so short that all of it is repeated
            found.append(chunk)
    return found


def _sections(text: str, has_headings: bool) -> list[_Section]:
    """What stands between headings and page ends. Headings with nothing below them go with what follows."""
    sections = [_Section(0, 0, (), False)]
    above: list[tuple[int, str]] = []
    fence: str | None = None
    for line, start, end in _lines(text):
        heading = _HEADING.match(line) if has_headings and fence is None else None
        if has_headings:
            fence = _fence_after(line, fence)
        if heading is not None:
            level = len(heading[1])
            title = _BLANK.sub(" ", heading[2].strip().rstrip("#").strip())[:MAX_HEADING]
            above = [*((outer, name) for outer, name in above if outer < level), (level, title)]
            names = tuple(name for _, name in above if name)
            if sections[-1].has_body:
                sections.append(_Section(start, end, names, False))
            sections[-1].headings = names
        elif line.strip():
            sections[-1].has_body = True
        sections[-1].end = end
        if line.endswith(PAGE_END):
            sections.append(_Section(end, end, sections[-1].headings, False))
    return sections


def _lines(text: str) -> Iterator[tuple[str, int, int]]:
    return ((match.group(), match.start(), match.end()) for match in _LINE.finditer(text) if match.group())


def _fence_after(line: str, fence: str | None) -> str | None:
    """The mark that fenced code goes on to after a line; `None` outside of such code."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if fence is None:
        return None if mark[1][0] == "`" and "`" in mark[2] else mark[1]
    return None if mark[1].startswith(fence) and not mark[2].strip() else fence


def _packed(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Neighbouring paragraphs, as many as go into `size`."""
    begin = start
    last = start
    for _, stop in _pieces(text, start, end, size):
        if stop - begin > size and last > begin:
            yield begin, last
            begin = last
        last = stop
    if last > begin:
        yield begin, last


def _pieces(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The paragraphs with the blanks behind them; one that is too long in several pieces."""
    for stop in [*(match.end() for match in _PARAGRAPH_END.finditer(text, start, end)), end]:
        while stop - start > size:
            cut = _cut(text, start, start + size)
            yield start, cut
            start = cut
        if stop > start:
            yield start, stop
            start = stop


def _cut(text: str, start: int, end: int) -> int:
    """Where to cut a paragraph, as late as possible: in the later half after a sentence or a line, or a word."""
    half = start + (end - start) // 2
    for mark in (_SENTENCE_END, _BLANK):
        last = 0
        for match in mark.finditer(text, half, end):
            last = match.end()
        if last > half:
            return last
    return end


def _back(text: str, start: int, earliest: int) -> int:
    """Where the overlap begins: with a word, if there are words."""
    if earliest == 0 or text[earliest - 1].isspace():
        return earliest
    word = _BLANK.search(text, earliest, start)
    return earliest if word is None else word.end()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
