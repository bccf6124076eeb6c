"""The frame parser: any cut of the bytes gives the same frames, and no bytes make it deaf."""

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.transport.framing import MAX_HEADER_BYTES, Fault, FrameParser, Framing, Item, encode

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(st.text(), JSON_VALUES, max_size=4).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
)
FRAMINGS = st.sampled_from(["header", "ndjson"])
GOOD = b'{"jsonrpc":"2.0","id":7,"method":"getState"}'


def splits_of(stream: bytes) -> st.SearchStrategy[list[bytes]]:
    """Every way to cut `stream` into pieces."""

    def cut(marks: list[int]) -> list[bytes]:
        ends = [0, *sorted(marks), len(stream)]
        return [stream[begin:end] for begin, end in itertools.pairwise(ends)]

    return st.lists(st.integers(0, len(stream)), max_size=12).map(cut)


def parse(*pieces: bytes, **options: Any) -> list[Item]:
    parser = FrameParser(**options)
    return [item for piece in pieces for item in parser.feed(piece)] + parser.finish()


def bytewise(stream: bytes) -> list[bytes]:
    return [stream[i : i + 1] for i in range(len(stream))]


@given(bodies=st.lists(BODIES, max_size=6), framing=FRAMINGS, data=st.data())
def test_frames_survive_any_split(bodies: list[bytes], framing: Framing, data: st.DataObject) -> None:
    stream = b"".join(encode(body, framing) for body in bodies)
    assert parse(*data.draw(splits_of(stream))) == bodies
    assert parse(*bytewise(stream)) == bodies


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: {n}",
        "content-length:{n}",
        "CONTENT-LENGTH :  {n}  ",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8|Content-Length: {n}",
        "Content-Length: {n}|X-Whatever: a: b",
        "Content-Length: 00{n}|Content-Length: {n}",
        "|Content-Length: {n}",
    ],
)
def test_every_header_form_is_read(header: str, newline: str) -> None:
    lines = header.format(n=len(GOOD)).split("|")
    stream = "".join(line + newline for line in [*lines, ""]).encode() + GOOD
    assert parse(stream * 2) == [GOOD, GOOD]
    assert parse(*bytewise(stream * 2)) == [GOOD, GOOD]


@pytest.mark.parametrize("first", [b"{", b" \r\n{", b"\xef\xbb\xbf{", b"["])
def test_a_brace_or_bracket_means_ndjson(first: bytes) -> None:
    parser = FrameParser()
    assert [parser.feed(piece) for piece in bytewise(first)] == [[]] * len(first)
    assert parser.framing == "ndjson"


def test_anything_else_means_headers() -> None:
    parser = FrameParser()
    assert parser.feed(b"\r\n ") == []
    assert parser.framing is None
    parser.feed(b"C")
    assert parser.framing == "header"


def test_ndjson_takes_blank_lines_crlf_and_a_last_line_without_newline() -> None:
    assert parse(b'{"a":1}\r\n\n  \r\n{"b":2}\n{"c":3}') == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_ndjson_bodies_stay_on_one_line() -> None:
    assert encode(b'{\n"a":1}', "ndjson") == b'{ "a":1}\n'


BROKEN = {
    "no length": b"X: y\r\n\r\n",
    "no number": b"Content-Length: abc\r\n\r\n{}",
    "negative": b"Content-Length: -5\r\n\r\n{}",
    "signed": b"Content-Length: +2\r\n\r\n{}",
    "hexadecimal": b"Content-Length: 0x2\r\n\r\n{}",
    "empty": b"Content-Length:\r\n\r\n{}",
    "absurd": b"Content-Length: 99999999999\r\n\r\n{}",
    "beyond absurd": b"Content-Length: " + b"9" * 400 + b"\r\n\r\n{}",
    "contradiction": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "no colon": b"hello\r\n",
    "tail of a body longer than its length": b'"}}',
    "one endless header": b"X: " + b"y" * (MAX_HEADER_BYTES + 1) + b"\r\n\r\n",
    "endless headers": b"X: y\r\n" * MAX_HEADER_BYTES,
    "a line of JSON": GOOD + b"\n",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_header_is_one_fault_and_the_next_frame_is_served(broken: bytes) -> None:
    good = encode(GOOD, "header")
    stream = good + broken + good + good
    for pieces in ([stream], bytewise(stream), [stream[:70], stream[70:]]):
        before, fault, *after = parse(*pieces)
        assert (before, after) == (GOOD, [GOOD, GOOD])
        assert isinstance(fault, Fault)
        assert (fault.kind, fault.fatal) == ("badHeader", False)


def test_a_header_block_at_the_cap_is_read() -> None:
    length = b"Content-Length: %d\r\n" % len(GOOD)
    padding = b"X: " + b"y" * (MAX_HEADER_BYTES - len(length) - 7) + b"\r\n"
    assert parse(length + padding + b"\r\n" + GOOD) == [GOOD]
    assert isinstance(parse(length + padding.replace(b"y", b"yy", 1) + b"\r\n" + GOOD)[0], Fault)


@pytest.mark.parametrize("framing", ["header", "ndjson"])
@pytest.mark.parametrize("cap", [100, 5000])
def test_the_cap_holds_to_the_byte(framing: Framing, cap: int) -> None:
    at_cap = b'{"id":1,"method":"run","params":"' + b"x" * (cap - 35) + b'"}'
    over = at_cap.replace(b"x", b"xx", 1)
    stream = encode(at_cap, framing) + encode(over, framing) + encode(GOOD, framing)
    for pieces in ([stream], bytewise(stream)):
        first, fault, last = parse(*pieces, max_message_bytes=cap)
        assert (first, last) == (at_cap, GOOD)
        assert isinstance(fault, Fault)
        assert (fault.kind, fault.limit, fault.request_id, fault.fatal) == ("tooLarge", cap, 1, False)


def test_a_carriage_return_is_not_counted_as_message() -> None:
    line = b"[" + b"1" * 4998 + b"]"
    assert parse(*bytewise(line + b"\r\n"), max_message_bytes=5000) == [line]


@pytest.mark.parametrize(
    ("start", "request_id", "response_id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"run","params":{"input":"', 5, None),
        (b'{"id":"a-\\u00e4","method":"run","params":"', "a-ä", None),
        (b'{"method":"run","id":-3,"params":[[[', -3, None),
        (b'{"params":{"id":9},"id":6,"method":"x","more":"', 6, None),
        (b'{"jsonrpc":"2.0","id":"s4","result":{"content":"', None, "s4"),
        (b'{"id":1,"error":{"message":"', None, 1),
        (b'{"jsonrpc":"2.0","params":{"id":5,"text":"', None, None),
        (b'{"id":null,"method":"run","params":"', None, None),
        (b'{"id":true,"method":"run","params":"', None, None),
        (b'{"id":1.5,"method":"run","params":"', None, None),
        (b'{"id":"\\ud800","method":"run","params":"', None, None),
        (b'{"id":"\xff","method":"run","params":"', None, None),
        (b'{"id":99999999999999999999,"method":"run","params":"', None, None),
        (b'[{"id":1,"method":"run"},"', None, None),
        (b'{"id":1,"params":"', None, None),
        (b"{" + b"[" * 5000, None, None),
        (b'{"a":' + b"[" * 5000, None, None),
    ],
)
def test_the_id_of_a_skipped_message_is_read_only_where_it_is_certain(
    start: bytes, request_id: object, response_id: object
) -> None:
    body = start + b"x" * 10_000
    for framing in ("header", "ndjson"):
        fault, good = parse(encode(body, framing), encode(GOOD, framing), framing=framing, max_message_bytes=8_000)
        assert isinstance(fault, Fault)
        assert (fault.kind, fault.request_id, fault.response_id) == ("tooLarge", request_id, response_id)
        assert good == GOOD


def test_an_id_that_the_cut_runs_through_is_not_certain() -> None:
    body = b'{"method":"run","pad":"' + b"x" * (4096 - 23 - 7 - 4) + b'","id":1234567,"params":"' + b"y" * 9000
    assert body[:4096].endswith(b'"id":1234')
    assert parse(encode(body, "header"), max_message_bytes=8_000) == [
        Fault("tooLarge", "a message exceeds 8000 bytes", 8_000)
    ]


@pytest.mark.parametrize(
    "stream", [b"Content-Length: 5\r\n\r\n{}", b"Content-Length: 5\r\n", b"Content-Le", b"Content-Length: 5\r\n\r\n"]
)
def test_a_frame_cut_by_the_end_is_a_fatal_fault(stream: bytes) -> None:
    (fault,) = parse(stream)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal) == ("truncated", True)


@pytest.mark.parametrize("stream", [b"", b"  \r\n", b"Content-Length: 2\r\n\r\n{}\r\n", b"\n{}\n"])
def test_a_clean_end_is_no_fault(stream: bytes) -> None:
    assert [item for item in parse(stream) if isinstance(item, Fault)] == []


def test_an_oversize_body_cut_by_the_end_is_still_reported() -> None:
    (fault,) = parse(b"Content-Length: 9000\r\n\r\n" + b"x" * 50, max_message_bytes=8_000)
    assert isinstance(fault, Fault)
    assert fault.kind == "tooLarge"


@given(framing=FRAMINGS, data=st.data())
def test_no_mutation_makes_the_parser_deaf(framing: Framing, data: st.DataObject) -> None:
    stream = bytearray(encode(GOOD, framing) * 3)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "double"])):
            case "flip":
                stream[at] = data.draw(st.integers(0, 255))
            case "cut":
                del stream[at : at + data.draw(st.integers(1, 9))]
            case "insert":
                stream[at:at] = data.draw(st.binary(max_size=9))
            case _:
                stream[at:at] = stream[at : at + 30]
        stream = stream or bytearray(b"x")
    # What follows is served, unless a broken length is one that may be: then all it covers is the message.
    stream += b"\n" + encode(GOOD, framing) * 40
    whole = parse(bytes(stream), framing=framing, max_message_bytes=200)
    assert parse(*data.draw(splits_of(bytes(stream))), framing=framing, max_message_bytes=200) == whole
    last = whole[-1]
    assert last == GOOD or (framing == "header" and isinstance(last, Fault) and last.kind != "badHeader")


@given(noise=st.binary(max_size=400), data=st.data())
def test_any_bytes_cut_anywhere_give_the_same_items(noise: bytes, data: st.DataObject) -> None:
    stream = noise + b"\r\n" + encode(GOOD, "header") + encode(GOOD, "ndjson")
    options = {"max_message_bytes": 64, "max_header_bytes": 48}
    assert parse(*data.draw(splits_of(stream)), **options) == parse(stream, **options)


@pytest.mark.parametrize("framing", ["header", "ndjson"])
def test_time_is_linear_in_the_bytes_however_they_are_cut(framing: Framing) -> None:
    def seconds(size: int, piece: int) -> float:
        stream = encode(b'"' + b"x" * size + b'"', framing)
        parser = FrameParser(framing)
        started = time.process_time()
        items = [item for at in range(0, len(stream), piece) for item in parser.feed(stream[at : at + piece])]
        assert len(items) == 1
        return time.process_time() - started

    # Quadratic work would take minutes: 64 MiB in 1,024 pieces, 512 KiB byte by byte.
    assert seconds(64 * 1024 * 1024 - 2, 65536) < 5
    assert seconds(512 * 1024, 1) < 5
