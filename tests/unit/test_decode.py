"""What the wire takes as JSON, what it repairs and what it refuses."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sidecar.transport.decode import DecodeError, decode, encode_json, has_nul, refuse_nul, replace_nul

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates as well
INT64 = st.integers(-(2**63), 2**63 - 1)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=10,
)


def lossless(text: str) -> str:
    """The same text as whole characters: pairs joined, lone halves replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(value: Any) -> Any:
    match value:
        case str():
            return lossless(value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {lossless(key): plain(item) for key, item in value.items()}
        case _:
            return value


@given(JSON_VALUES)
def test_every_value_survives_and_lone_surrogates_are_replaced(value: Any) -> None:
    assert decode(json.dumps(value).encode()) == plain(value)


@given(JSON_VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert decode(encode_json(value)) == plain(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"bad \udc88 tail"', "bad \ufffd tail"),
        (rb'"\ud83e"', "\ufffd"),
        (rb'"\ud83e\ud83e\udd5f"', "\ufffd🥟"),
        (rb'"\uDD5F\uD83E"', "\ufffd\ufffd"),
        (rb'"\ud83e\u0041\\ud83e\\\ud83e"', "\ufffdA\\ud83e\\\ufffd"),
        (rb'"\\ud83e"', "\\ud83e"),
        (rb'{"\udc00":{"\ud83e\udd5f":1}}', {"\ufffd": {"🥟": 1}}),
        ("饺子 🥟 naïve".join('""').encode(), "饺子 🥟 naïve"),
    ],
)
def test_surrogates(text: bytes, value: object) -> None:
    assert decode(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[1,]", b"{'a':1}", b"1 2", b"nul", b'"a\nb"', b'"\x00"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800',
        b"\xef\xbb\xbf1", b'{"a":1}{"b":2}', b'"\\x41"', b"01", b"+1", b".5", b"1.",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(text)


@pytest.mark.parametrize(
    "number",
    ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1E+400", "1.5e0309", "1" * 310 + ".5", "9" * 400,
     "9223372036854775808", "-9223372036854775809", "1" + "0" * 30],
)  # fmt: skip
@pytest.mark.parametrize("around", ["%s", "[0,%s]", '{"a":{"b":[1,{"c":%s}]}}'])
def test_a_number_out_of_range_is_refused(number: str, around: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode((around % number).encode())
    assert number not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
        (b"0.1234567890123456789", 0.12345678901234568),
        (b'["1e999", "9223372036854775808", "NaN"]', ["1e999", "9223372036854775808", "NaN"]),
    ],
)
def test_a_number_in_range_is_kept(text: bytes, value: object) -> None:
    assert decode(text) == value
    assert type(decode(text)) is type(value)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_has_a_limit(opening: bytes, closing: bytes) -> None:
    decode(opening * 200 + b"1" + closing * 200)
    for levels in (201, 100_000):
        with pytest.raises(DecodeError, match="deeper than 200"):
            decode(opening * levels + b"1" + closing * levels)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_limit_of_depth_may_be_lower(opening: bytes, closing: bytes) -> None:
    beside = b'[[1],{"a":2},"[[[[[[[["]'
    assert decode(opening * 3 + b"1" + closing * 3, 3)
    assert decode(beside, 2)
    with pytest.raises(DecodeError, match="deeper than 3"):
        decode(opening * 4 + b"1" + closing * 4, 3)


def test_an_error_never_repeats_the_input() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(b'{"api_key": "s3cret", oops}')
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys_are_data() -> None:
    value = {"jsonrpc": {"jsonrpc": "2.0", "id": 1}, "type_name": "x", "a-b": 1, "class": [], "": None, "__proto__": {}}
    assert decode(json.dumps(value).encode()) == value


def test_nul_is_found_refused_or_replaced() -> None:
    body = rb'{"a":["x",{"b\u0000":1}],"c":"\u0000y"}'
    value = decode(body)
    assert has_nul(body)
    assert not has_nul(b'{"a":"0"}')
    assert replace_nul(value) == {"a": ["x", {"b\ufffd": 1}], "c": "\ufffdy"}
    refuse_nul({"a": ["x", {"b": 1}], "c": None})
    with pytest.raises(DecodeError) as caught:
        refuse_nul(value, ("state",))
    assert caught.value.path == ("state", "a", 1)
    with pytest.raises(DecodeError) as caught:
        refuse_nul(value["c"], ("state", "c"))
    assert caught.value.path == ("state", "c")


class Model(BaseModel):
    text: str
    number: float = math.inf


def test_what_json_cannot_hold_is_written_as_json() -> None:
    assert encode_json({"a": math.nan, "b": [math.inf]}) == b'{"a":null,"b":[null]}'
    assert encode_json({"k\udcff": "x\udcff", "n": math.nan}) == '{"k\ufffd":"x\ufffd","n":null}'.encode()
    assert encode_json(Model(text="\ud83e")) == '{"text":"\ufffd","number":null}'.encode()
    assert encode_json("\ud83e\udd5f") == '"🥟"'.encode()


def test_a_large_message_is_decoded_in_a_moment() -> None:
    records = [
        {"id": i, "name": f"node {i}", "at": 1700000000000 + i, "tags": ["a", "b"], "text": "x" * 30}
        for i in range(30_000)
    ]
    body = json.dumps(records).encode()
    started = time.process_time()
    assert decode(body) == records
    assert time.process_time() - started < 5  # liveness only: it takes a small part of a second
