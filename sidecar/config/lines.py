"""Finds the line on which each key of a TOML text stands, which `tomllib` does not tell. It validates nothing."""

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from typing import Final

from .keypath import MAX_DEPTH, KeyPath

_BLANK: Final = re.compile(r"[ \t]*")
_BLANK_LINES: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SEPARATORS: Final = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_KEY: Final = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_SCALAR: Final = re.compile(
    r'''"""(?:[^\\]|\\[\s\S])*?"""(?:""(?!")|"(?!"))?'''
    r"""|'''[\s\S]*?'''(?:''(?!')|'(?!'))?"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
    r"""|\d{4}-\d\d-\d\d [^\s,\]}#]+|[^\s,\]}#]+"""
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, of each key, table header and list item of a valid TOML text.

    In a text that is not valid it stops where it no longer understands, and tells what it found so far.

    Raises:
        TooDeep: something is nested deeper than `MAX_DEPTH`. `tomllib` has no such limit, and a line of some
            hundred thousand dotted keys would keep it busy for hours: so this comes first.
    """
    scanner = _Scanner(text)
    with suppress(_Lost):
        scanner.scan()
    return scanner.lines


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a path, else that of the nearest table or list around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


class TooDeep(Exception):
    """Nested deeper than `MAX_DEPTH`, on this line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Lost(Exception):
    """The text is no TOML here."""


class _Scanner:
    """Walks over the text once; `at` is the place, `lines` what was found."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._starts = [match.end() for match in re.finditer("\n", text)]
        self._table_counts: dict[KeyPath, int] = {}

    def scan(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK_LINES)
        while self._at < len(self._text):
            if self._take("[["):
                table = self._header(is_list=True)
            elif self._take("["):
                table = self._header(is_list=False)
            else:
                self._pair(table)
            self._skip(_BLANK_LINES)

    def _header(self, *, is_list: bool) -> KeyPath:
        line = self._line()
        path: KeyPath = ()
        keys = self._dotted_key(path)
        for position, key in enumerate(keys):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if is_list and position == len(keys) - 1:
                self._table_counts[path] = self._table_counts.get(path, 0) + 1
            if path in self._table_counts:
                path = (*path, self._table_counts[path] - 1)
        self.lines[path] = line
        self._expect("]]" if is_list else "]")
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._dotted_key(table):
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._expect("=")
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._check_depth(len(path))
        if self._take("{"):
            self._skip(_SEPARATORS)
            while not self._take("}"):
                self._pair(path)
                self._skip(_SEPARATORS)
        elif self._take("["):
            self._skip(_SEPARATORS)
            index = 0
            while not self._take("]"):
                self.lines[*path, index] = self._line()
                self._value((*path, index))
                self._skip(_SEPARATORS)
                index += 1
        else:
            self._match(_SCALAR)

    def _dotted_key(self, table: KeyPath) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            raw = self._match(_KEY)
            keys.append(next(iter(tomllib.loads(f"{raw} = 0"))) if raw[0] in "\"'" else raw)
            self._check_depth(len(table) + len(keys))
            self._skip(_BLANK)
            if not self._take("."):
                return keys

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise TooDeep(self._line())

    def _line(self) -> int:
        return bisect_right(self._starts, self._at) + 1

    def _take(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        if found:
            self._at += len(token)
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _Lost

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._match(pattern)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _Lost
        self._at = match.end()
        return match.group()
