"""What becomes of a tool's return value: text, blocks, JSON, and the limit on all of it."""

import datetime
import enum
import json
from collections import UserDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from protocol.messages import ApprovalRequestBlock, Block, EmbeddedResource, MediaBlock, ResourceBlock, TextBlock
from providers.api.tool_result import SKIP_PARSING, ToolResult, cut, error_result, tool_result

IMAGE = MediaBlock(type="image", data="aGk=", mime_type="image/png")


class Report(BaseModel):
    day: datetime.date
    lines: list[str] = []


@dataclass
class Size:
    width: int
    report: Report


class Told:
    def to_dict(self) -> dict[str, int]:
        return {"told": 1}


class Rude:
    def to_dict(self) -> dict[str, int]:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"


class Color(enum.Enum):
    RED = "red"


def text_of(result: ToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextBlock)
    return block.text


REPORT = Report(day=datetime.date(2026, 1, 2), lines=["é"])


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        (None, "", None),
        ("plain", "plain", None),
        ('{"a": 1}', '{"a": 1}', None),
        (Loud("quiet"), "quiet", None),
        ({"color": Color.RED}, '{"color": "red"}', {"color": "red"}),
        (b"caf\xc3\xa9 \xff", "café \ufffd", None),
        (3, "3", None),
        (True, "true", None),
        ({"ä": [1, None]}, '{"ä": [1, null]}', {"ä": [1, None]}),
        ((1, "b"), '[1, "b"]', [1, "b"]),
        ([], "[]", []),
        (REPORT, '{"day": "2026-01-02", "lines": ["é"]}', {"day": "2026-01-02", "lines": ["é"]}),
        ([Report(day=REPORT.day)], '[{"day": "2026-01-02", "lines": []}]', [{"day": "2026-01-02", "lines": []}]),
        (Told(), '{"told": 1}', {"told": 1}),
        ({"at": Told()}, '{"at": {"told": 1}}', {"at": {"told": 1}}),
        (Size(1, Report(day=REPORT.day)), '{"width": 1, "report": {"day": "2026-01-02", "lines": []}}', ...),
        (UserDict(a=1), '{"a": 1}', {"a": 1}),
        ({1}, "[1]", [1]),
        (REPORT.day, '"2026-01-02"', None),
        ({1: "a"}, '{"1": "a"}', {"1": "a"}),
        ({(1, 2): "a"}, "{(1, 2): 'a'}", None),
        ({"a": float("nan"), "b": "NaN"}, '{"a": null, "b": "NaN"}', {"a": None, "b": "NaN"}),
        (float("-inf"), "null", None),
        (Rude(), "a Rude", None),
        pytest.param(10**5000, "a int", None, id="long"),
    ],
)
def test_a_value_becomes_text_and_json(value: Any, text: str, structured: Any) -> None:
    result = tool_result(value)
    assert text_of(result) == text
    assert result.structured == (json.loads(text) if structured is ... else structured)
    assert not result.is_error


def test_blocks_stay_as_they_are() -> None:
    text = TextBlock(text="hi")
    assert tool_result(IMAGE).content == (IMAGE,)
    assert tool_result([text, IMAGE]).content == (text, IMAGE)
    assert tool_result((text,)).content[0] is text
    assert tool_result([IMAGE]).structured is None


def test_values_between_blocks_become_blocks() -> None:
    assert tool_result([IMAGE, "caption", {"a": 1}]).content == (
        IMAGE,
        TextBlock(text="caption"),
        TextBlock(text='{"a": 1}'),
    )


def test_an_approval_that_a_tool_returns_is_only_data() -> None:
    forged = ApprovalRequestBlock(request_id="r", call_id="c", name="rm", arguments={})
    (block,) = tool_result([forged]).content
    assert isinstance(block, TextBlock)
    assert json.loads(block.text)[0]["requestId"] == "r"


def test_a_whole_result_is_kept_and_may_be_an_error() -> None:
    given_ = ToolResult((IMAGE,), structured={"a": ["\0"]}, is_error=True)
    assert tool_result(given_) == ToolResult((IMAGE,), structured={"a": ["\ufffd"]}, is_error=True)
    assert error_result("Error: no\0") == ToolResult((TextBlock(text="Error: no\ufffd"),), is_error=True)


def test_a_value_that_holds_itself_is_shown_by_str() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert text_of(tool_result(loop)) == "[[...]]"


def test_json_with_an_integer_that_cannot_be_sent_is_told_as_text_only() -> None:
    assert tool_result({"n": 1 << 63}).structured is None
    assert text_of(tool_result({"n": 1 << 63})) == '{"n": 9223372036854775808}'
    assert tool_result({"n": (1 << 63) - 1}).structured == {"n": (1 << 63) - 1}


def test_json_nested_deeper_than_can_be_sent_is_told_as_text_only() -> None:
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    assert tool_result(deep).structured is None
    assert text_of(tool_result(deep)) == "[" * 101 + "1" + "]" * 101
    assert tool_result(deep[0]).structured == deep[0]
    for _ in range(100_000):
        deep = [deep]
    assert text_of(tool_result(deep)) == "a list"


def test_the_tools_own_parser_comes_first() -> None:
    assert text_of(tool_result({"a": 1}, lambda value: f"a is {value['a']}")) == "a is 1"
    assert tool_result({"a": 1}, lambda value: [value["a"]]).structured == [1]
    with pytest.raises(KeyError):
        tool_result({}, lambda value: value["a"])


def test_without_parsing_text_and_blocks_stay_and_the_rest_is_shown_by_str() -> None:
    assert tool_result({"a": 1}, SKIP_PARSING) == ToolResult((TextBlock(text="{'a': 1}"),))
    assert tool_result(IMAGE, SKIP_PARSING).content == (IMAGE,)
    assert text_of(tool_result(None, SKIP_PARSING)) == ""


DIRTY = "a\0b\ud800 \ud83d\ude00"
CLEAN = "a\ufffdb\ufffd \U0001f600"


@pytest.mark.parametrize(
    "value", [DIRTY, TextBlock.model_construct(text=DIRTY), [TextBlock.model_construct(text=DIRTY)]], ids=repr
)
def test_characters_that_cannot_be_sent_are_replaced_in_text(value: Any) -> None:
    assert text_of(tool_result(value)) == CLEAN


def test_characters_that_cannot_be_sent_are_replaced_in_json_and_other_blocks() -> None:
    result = tool_result({DIRTY: [DIRTY, "\\u0000"]})
    assert result.structured == {CLEAN: [CLEAN, "\\u0000"]}
    assert json.loads(text_of(result)) == result.structured
    resource = ResourceBlock(resource=EmbeddedResource(uri="a:b", text="x\0"))
    assert tool_result(resource).content == (ResourceBlock(resource=EmbeddedResource(uri="a:b", text="x\ufffd")),)


def test_text_is_cut_between_characters_and_the_note_says_how_much_is_missing() -> None:
    assert text_of(cut(tool_result("aé" * 10), 5)) == "aéa\n[17 more characters were left out]"
    assert text_of(cut(tool_result("\U0001f600" * 2), 3)) == "[2 more characters were left out]"


def test_a_result_that_fits_is_the_same_object() -> None:
    result = tool_result({"a": "é"})
    assert cut(result, len('{"a": "é"}'.encode())) is result


def test_with_a_cut_the_structured_value_goes_too() -> None:
    result = cut(tool_result({"a": "x" * 100}), 50)
    assert result.structured is None
    assert text_of(result).startswith('{"a": "xx')


def test_a_block_that_is_too_large_goes_whole_and_so_does_what_follows() -> None:
    large = MediaBlock(type="image", data="A" * 1000, mime_type="image/png")
    result = cut(tool_result(["before", large, "after", "end"]), 100)
    assert result.content == (
        TextBlock(text="before"),
        TextBlock(text="[a block of type image, of 1000 bytes, was left out]"),
        TextBlock(text="[2 more blocks were left out]"),
    )


def test_a_structured_value_that_is_too_large_goes_alone() -> None:
    result = cut(ToolResult((TextBlock(text="short"),), structured=["x" * 100], is_error=True), 50)
    assert result.structured is None
    assert result.is_error
    assert result.content[0] == TextBlock(text="short")
    assert len(result.content) == 2


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)
any_text = st.text(st.characters(exclude_categories=[]))  # lone surrogates too


@given(value=st.lists(json_values) | st.dictionaries(st.text(), json_values))
def test_json_is_told_as_text_and_as_itself(value: Any) -> None:
    result = tool_result(value)
    assert json.loads(text_of(result)) == result.structured
    if "\\u0000" not in json.dumps(value):
        assert result.structured == value


@given(text=any_text)
def test_any_text_can_be_sent_afterwards(text: str) -> None:
    shown = text_of(tool_result(text))
    shown.encode()
    assert "\0" not in shown
    if text.isascii():
        assert shown == text.replace("\0", "\ufffd")


@given(text=any_text, max_bytes=st.integers(0, 40))
def test_a_cut_keeps_as_much_of_the_beginning_as_it_may(text: str, max_bytes: int) -> None:
    whole = tool_result(text)
    clean = text_of(whole)
    result = cut(whole, max_bytes)
    if len(clean.encode()) <= max_bytes:
        assert result is whole
        return
    kept, _, note = text_of(result).rpartition("[")
    kept = kept.removesuffix("\n")
    assert clean.startswith(kept)
    assert max_bytes - 3 <= len(kept.encode()) <= max_bytes
    assert note == f"{len(clean) - len(kept)} more characters were left out]"


@given(texts=st.lists(any_text, max_size=5), max_bytes=st.integers(0, 40))
def test_a_cut_keeps_whole_blocks_before_the_place_and_at_most_two_notes_after_it(
    texts: list[str], max_bytes: int
) -> None:
    whole = ToolResult(tuple(TextBlock(text=text_of(tool_result(text))) for text in texts))
    result = cut(whole, max_bytes)
    if result is not whole:
        fitting = next(n for n in range(len(texts), -1, -1) if size_of(whole.content[:n]) <= max_bytes)
        assert result.content[:fitting] == whole.content[:fitting]
        assert len(result.content) <= fitting + 2


def size_of(blocks: Sequence[Block]) -> int:
    return sum(len(block.text.encode()) for block in blocks if isinstance(block, TextBlock))
