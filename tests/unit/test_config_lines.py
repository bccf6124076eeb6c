"""Where a key stands in a TOML text, for all the ways of writing one."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config.keypath import KeyPath, toml_key, toml_string
from sidecar.config.lines import key_lines, line_of

EVERY_FORM = '''\
# a comment with [brackets] = "and quotes"
title = "one"
site."quoted key".deep = 1

[agents.coder]   # header
model = 'a#b'
text = """
not = "a key"
[nor.a.table]
"""
options = { temperature = 0.2, tool_choice = { name = "x" } }
stop = [
  "a",   # first ]
  "]",
  { in = 1 },
]

[[agents.coder.context_providers]]
type = "one"
[[agents.coder.context_providers]]
type = "two"
[agents.coder.context_providers.config]
n = 3
[[agents.coder.context_providers.config.inner]]
z = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("site", "quoted key", "deep"), 3),
        (("agents", "coder"), 5),
        (("agents", "coder", "model"), 6),
        (("agents", "coder", "text"), 7),
        (("agents", "coder", "options", "tool_choice", "name"), 11),
        (("agents", "coder", "stop", 1), 14),
        (("agents", "coder", "stop", 2, "in"), 15),
        (("agents", "coder", "context_providers", 0, "type"), 19),
        (("agents", "coder", "context_providers", 1), 20),
        (("agents", "coder", "context_providers", 1, "type"), 21),
        (("agents", "coder", "context_providers", 1, "config", "n"), 23),
        (("agents", "coder", "context_providers", 1, "config", "inner", 0, "z"), 25),
    ],
)
def test_a_key_is_found_on_its_line(path: KeyPath, line: int) -> None:
    assert key_lines(EVERY_FORM)[path] == line


def test_a_key_that_is_not_there_stands_at_its_table() -> None:
    lines = key_lines(EVERY_FORM)

    assert line_of(lines, ("agents", "coder", "context_providers", 1, "config", "absent", "deeper")) == 22
    assert line_of(lines, ("nowhere",)) is None


@pytest.mark.parametrize("text", ['a = 1\nb = "open', "a = 1\n= 2\n", "a = 1\n[[x]\n", "a = 1\nb = {", "a = 1\nb = ["])
def test_a_text_that_is_no_toml_gives_what_stands_before_the_damage(text: str) -> None:
    assert key_lines(text)[("a",)] == 1


@pytest.mark.parametrize(
    "value",
    [
        '"""a""""',
        "'''b'''''",
        '"""\n\\"""\n"""',
        "''",
        '"\\"]"',
        "1979-05-27 07:32:00",
        "1979-05-27T07:32:00Z",
        "-inf",
        "0x1F",
    ],
)
def test_the_item_after_any_kind_of_value_is_counted_right(value: str) -> None:
    text = f"list = [{value},\n{{ after = 1 }}]"
    tomllib.loads(text)

    assert key_lines(text)[("list", 1, "after")] == text.count("\n") + 1


KEYS = st.one_of(st.from_regex(r"[a-z0-9_-]{1,4}", fullmatch=True), st.text(st.characters(codec="utf-8"), max_size=4))
SCALARS = st.one_of(
    st.integers(0, 9).map(str),
    st.sampled_from(["true", '"""\nx\n# y"""', "'''\n[z]\n'''"]),
    st.text(max_size=5).map(toml_string),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4)


def written(value: Any, path: KeyPath, at: int, lines: dict[KeyPath, int]) -> str:
    """A value as TOML that begins on line `at`; tells the line of what is in it."""
    if isinstance(value, str):
        return value
    text = "{" if isinstance(value, dict) else "[ # note\n"
    for position, (key, below) in enumerate(value.items() if isinstance(value, dict) else enumerate(value)):
        line = at + text.count("\n")
        lines[*path, key] = line
        if isinstance(value, dict):
            text += ", " * (position > 0) + f"{toml_key(key)} = "
            text += written(below, (*path, key), line, lines)
        else:
            text += written(below, (*path, key), line, lines) + ",\n\n"
    return text + ("}" if isinstance(value, dict) else "]")


def document(tables: dict[str, Any], lines: dict[KeyPath, int]) -> Iterator[str]:
    at = 1
    for name, table in tables.items():
        lines[(name,)] = at
        yield (text := f"[{toml_key(name)}] # ]\n\n")
        at += text.count("\n")
        for key, value in table.items():
            lines[name, key] = at
            yield (text := f"  {toml_key(key)} = {written(value, (name, key), at, lines)}  # = 1\n")
            at += text.count("\n")


@given(tables=st.dictionaries(KEYS, TABLES, max_size=3))
def test_every_key_of_any_document_is_found(tables: dict[str, Any]) -> None:
    expected: dict[KeyPath, int] = {}
    text = "".join(document(tables, expected))
    tomllib.loads(text)

    assert key_lines(text) == expected
