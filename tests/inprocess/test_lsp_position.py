"""Positions: counted in the client's unit, on LSP's lines; and the unit is negotiated as pygls would."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder

from sidecar.lsp.position import Position, line_starts, negotiate_position_encoding, offset_at, position_at, replace

WIDTHS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
TEXTS = st.text(st.sampled_from("ab\n\r\t\x0b\x0c\x1c\x85\u2028é漢😋"), max_size=24)


@given(offered=st.lists(st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-7", ""])))
def test_the_encoding_is_the_one_that_pygls_would_choose(offered: list[str]) -> None:
    general = types.GeneralClientCapabilities(position_encodings=offered)
    theirs = ServerCapabilitiesBuilder.choose_position_encoding(types.ClientCapabilities(general=general))

    ours = negotiate_position_encoding({"capabilities": {"general": {"positionEncodings": offered}}})

    assert ours == theirs


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"capabilities": None},
        {"capabilities": []},
        {"capabilities": {"general": "utf-8"}},
        {"capabilities": {"general": {"positionEncodings": "utf-8"}}},
        {"capabilities": {"general": {"positionEncodings": {"utf-8": 1}}}},
        {"capabilities": {"general": {"positionEncodings": [8, None, ["utf-8"]]}}},
    ],
)
def test_a_client_that_says_nothing_usable_gets_utf_16(params: dict[str, Any]) -> None:
    assert negotiate_position_encoding(params) == "utf-16"


def test_the_first_known_encoding_counts_whatever_stands_before_it() -> None:
    params = {"capabilities": {"general": {"positionEncodings": [8, "klingon", "utf-32", "utf-8"]}}}
    assert negotiate_position_encoding(params) == "utf-32"


@given(text=TEXTS, new=TEXTS, encoding=st.sampled_from(list(WIDTHS)), data=st.data())
def test_a_change_lands_where_the_client_made_it(text: str, new: str, encoding: str, data: st.DataObject) -> None:
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    if any(text[cut - 1 : cut + 1] == "\r\n" for cut in (first, last)):
        return  # no client can point between the two

    changed = replace(text, position_of(text, first, encoding), position_of(text, last, encoding), new, encoding)

    assert changed == text[:first] + new + text[last:]


def position_of(text: str, offset: int, encoding: str) -> Position:
    """How an editor names a place, by walking there."""
    codec, width = WIDTHS[encoding]
    line = column = 0
    for index, character in enumerate(text[:offset]):
        if character == "\n" or (character == "\r" and text[index + 1 : index + 2] != "\n"):
            line, column = line + 1, 0
        else:
            column += len(character.encode(codec)) // width
    return Position(line, column)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((0, 99), (0, 99), "a😋bX\r\nc"),
        ((9, 0), (9, 9), "a😋b\r\ncX"),
        ((0, 2), (0, 2), "aX😋b\r\nc"),
        ((1, 1), (0, 1), "aX"),
    ],
    ids=["behind the line", "behind the text", "inside a character", "backwards"],
)
def test_positions_that_do_not_exist_are_moved_to_the_next_that_does(
    start: tuple[int, int], end: tuple[int, int], expected: str
) -> None:
    assert replace("a😋b\r\nc", Position(*start), Position(*end), "X", "utf-16") == expected


@given(text=TEXTS, encoding=st.sampled_from(list(WIDTHS)), data=st.data())
def test_a_place_is_named_as_an_editor_would_name_it(text: str, encoding: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        return  # nobody can point between the two

    position = position_at(text, offset, encoding)

    assert position == position_of(text, offset, encoding)
    assert offset_at(text, position, encoding) == offset


@given(text=TEXTS)
def test_every_line_begins_where_its_first_position_points(text: str) -> None:
    starts = line_starts(text)
    assert starts == [offset_at(text, Position(line, 0), "utf-16") for line in range(len(starts))]
    assert position_at(text, len(text), "utf-16").line == len(starts) - 1
