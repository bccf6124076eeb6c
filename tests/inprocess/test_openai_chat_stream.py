"""The reader of answers, without HTTP: tool calls put together from bad streams, and any cut of the bytes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.messages import FunctionCallBlock
from providers.api.ports import CallRequested, ChatUpdate, Finished, TextDelta
from sidecar.errors import ModelBadStream, SidecarError
from sidecar.models.openai_stream import CompletionReader
from sidecar.models.sse import MAX_EVENT_BYTES
from tests.bench.model_script import DONE, TC, Chunk, F, Item, Raw, T, Think, answer, encode
from tests.conftest import scaled


def read(*pieces: bytes) -> list[ChatUpdate]:
    """All updates of a body that comes in these pieces."""
    reader = CompletionReader("local")
    updates = [update for piece in pieces for update in reader.feed(piece)]
    return updates + list(reader.finish())


def outcome(*pieces: bytes) -> tuple[list[Any], str | None]:
    """The updates with neighbours joined and minted ids masked, and the kind of the error."""
    reader = CompletionReader("local")
    updates: list[Any] = []
    error = None
    try:
        for piece in pieces:
            updates.extend(reader.feed(piece))
        updates.extend(reader.finish())
    except SidecarError as failure:
        error = failure.kind
    return [re.sub(r"call_[0-9a-f]{24}", "call_minted", str(update)) for update in updates], error


def calls_of(*items: Item) -> list[FunctionCallBlock]:
    """The calls of a scripted answer."""
    body = b"".join(encode(piece) for piece in answer(*items))
    return [update.call for update in read(body) if isinstance(update, CallRequested)]


def parts(text: str) -> tuple[str, str, str]:
    """A text in three."""
    return text[:3], text[3:9], text[9:]


MEAT, VEG = '{"kind":"meat"}', '{"kind":"veg"}'
BOTH = [("call_a", {"kind": "meat"}), ("call_b", {"kind": "veg"})]


def fragments(call_id: str, opening: int | None, following: int | None, text: str) -> list[TC]:
    """A call in three fragments; only the first has id and name."""
    first, *rest = parts(text)
    return [TC(opening, call_id, "GetMenu", first), *(TC(following, None, None, part) for part in rest)]


@pytest.mark.parametrize(
    "chunks",
    [
        [TC(0, "call_a", "GetMenu", MEAT), TC(0, "call_b", "GetMenu", VEG)],
        [TC(0, "call_a", "GetMenu", MEAT), TC(1, "call_b", "GetMenu", VEG)],
        [TC(None, "call_a", "GetMenu", MEAT), TC(None, "call_b", "GetMenu", VEG)],
        [*fragments("call_a", 0, 0, MEAT), *fragments("call_b", 0, 0, VEG)],
        [*fragments("call_a", 0, 0, MEAT), *fragments("call_b", 1, 1, VEG)],
        [*fragments("call_a", 0, 0, MEAT), *fragments("call_b", 1, 0, VEG)],
        [*fragments("call_a", 0, None, MEAT), *fragments("call_b", 1, None, VEG)],
        [*fragments("call_a", None, None, MEAT), *fragments("call_b", None, None, VEG)],
        [TC(0, "call_a", "GetMenu"), TC(1, "call_b", "GetMenu"), TC(0, None, None, MEAT), TC(1, None, None, VEG)],
        [TC(0, "call_a", "GetMenu", part) for part in parts(MEAT)] + [TC(1, "call_b", "GetMenu", VEG)],
        [TC(0, "call_a", None, ""), TC(0, None, "GetMenu", MEAT), TC(1, "call_b", "GetMenu", VEG)],
        [TC(0, "call_a", "GetMenu", {"kind": "meat"}), TC(0, "call_b", "GetMenu", {"kind": "veg"})],
    ],
    ids=[
        "one-index", "two-indexes", "no-index", "split-one-index", "split-two", "split-wrong-index",
        "split-index-at-first", "split-no-index", "interleaved", "id-and-name-again", "name-later", "objects",
    ],
)  # fmt: skip
def test_two_calls_stay_two_whatever_the_stream_says_of_indexes(chunks: list[TC]) -> None:
    calls = calls_of(*chunks)
    assert [(call.call_id, call.arguments) for call in calls] == BOTH
    assert {call.name for call in calls} == {"GetMenu"}


def test_calls_without_ids_get_their_own() -> None:
    calls = calls_of(TC(0, None, "GetMenu", MEAT), TC(0, None, "GetMenu", VEG), TC(1, "", "GetMenu", ""))
    assert [call.arguments for call in calls] == [{"kind": "meat"}, {"kind": "veg"}, {}]
    assert len({call.call_id for call in calls}) == 3
    assert all(call.call_id for call in calls)


def test_calls_that_share_an_id_get_their_own() -> None:
    calls = calls_of(TC(0, "same", "GetMenu", MEAT), TC(1, "same", "GetMenu", VEG))
    assert len({call.call_id for call in calls}) == 2
    assert [call.arguments for call in calls] == [{"kind": "meat"}, {"kind": "veg"}]


def test_a_new_id_on_every_fragment_is_still_one_call() -> None:
    first, second, third = parts(MEAT)
    calls = calls_of(TC(0, "a1", "GetMenu", first), TC(0, "a2", None, second), TC(0, "a3", None, third))
    assert [(call.call_id, call.arguments) for call in calls] == [("a1", {"kind": "meat"})]


@pytest.mark.parametrize(
    "text", ['{"a":', "[1]", '"x"', "nonsense", '{"a":1e999}', '{"a":NaN}', '{"a":"\\u0000"}', "{}{}"]
)
def test_arguments_that_are_no_object_are_kept_as_text(text: str) -> None:
    (call,) = calls_of(TC(0, "c1", "GetMenu", text))
    assert (call.arguments, call.raw_arguments) == ({}, text)


def test_arguments_with_half_a_surrogate_pair_are_repaired() -> None:
    (call,) = calls_of(TC(0, "c1", "GetMenu", r'{"a":"\udc88","b":"\ud83e\udd5f"}'))
    assert (call.arguments, call.raw_arguments) == ({"a": "\ufffd", "b": "🥟"}, None)


def test_arguments_nested_too_deep_are_kept_as_text() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    (call,) = calls_of(TC(0, "c1", "GetMenu", deep))
    assert call.arguments == {}


def test_calls_cut_by_the_token_limit_are_reported_with_that_reason() -> None:
    body = b"".join(encode(piece) for piece in answer(TC(0, "c1", "PlaceOrder", '{"items":[{"dish'), F("length")))
    *_, call, finished = read(body)
    assert isinstance(call, CallRequested)
    assert call.call.raw_arguments == '{"items":[{"dish'
    assert isinstance(finished, Finished)
    assert finished.reason == "length"


@pytest.mark.parametrize("items", [[TC(0, "c1", None, "{}")], [F("tool_calls")]])
def test_calls_that_are_announced_but_not_there_are_no_answer(items: list[Item]) -> None:
    with pytest.raises(ModelBadStream):
        calls_of(*items)


def test_calls_that_end_with_stop_are_calls() -> None:
    body = b"".join(encode(piece) for piece in answer(TC(0, "c1", "GetMenu", "{}"), F("stop")))
    assert read(body)[-1] == Finished("toolCalls", None, "fake")


def test_other_choices_than_the_first_are_passed_over() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    body = b"".join(encode(piece) for piece in answer(Chunk(second), T("yes"), F("stop")))
    assert read(body)[0] == TextDelta("yes")


def test_nothing_after_done_counts() -> None:
    body = b"".join(map(encode, answer(T("a"), F("stop"), DONE))) + b"data: {nonsense\n\n"
    assert read(body)[0] == TextDelta("a")


def test_nul_characters_become_the_replacement_character() -> None:
    assert read(b"".join(map(encode, answer(T("a\0b")))))[0] == TextDelta("a\ufffdb")


def test_an_event_over_the_limit_is_refused() -> None:
    part = b"data: " + b"x" * (1 << 20)
    with pytest.raises(ModelBadStream):
        read(*([part] * (MAX_EVENT_BYTES // len(part) + 2)))


def test_one_event_of_fifty_megabytes_is_read() -> None:
    body = b"".join(map(encode, answer(T("x" * 50_000_000))))
    step = 1 << 16
    updates = read(*(body[start : start + step] for start in range(0, len(body), step)))
    assert isinstance(updates[0], TextDelta)
    assert len(updates[0].text) == 50_000_000


TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
PIECES = st.one_of(
    TEXTS.map(T),
    TEXTS.map(Think),
    st.builds(
        TC,
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, "f", "g"]),
        st.sampled_from(["", "{}", '{"x":', '"é🥟"}', "1}"]),
    ),
    st.sampled_from(["stop", "length", "tool_calls", "content_filter", "odd"]).map(F),
    st.sampled_from(
        [
            b": ping\n\n", b"\n\n", b"\r\n", b"\r", b"event: x\n", b"data:", b"data: [DONE]\n\n", b"data: {bad\n\n",
            b'data: {"error":{"code":429}}\n\n', b'data: {"choices":[]}\r\n\r\n', b"\xef\xbb\xbf", b"data: 1\n",
            b'data: {"choices":[{"delta":\r\ndata: {"content":"a"}}]}\r\n\r\n',
        ]
    ).map(Raw),
    st.just(DONE),
)  # fmt: skip


@given(pieces=st.lists(PIECES, max_size=8), data=st.data())
def test_any_cut_of_the_bytes_gives_the_same_answer(pieces: list[Any], data: st.DataObject) -> None:
    body = b"".join(encode(piece) for piece in pieces)
    places = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=12)))
    cut = [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]
    whole = outcome(body)
    assert outcome(*cut) == whole
    assert outcome(*(body[place : place + 1] for place in range(len(body)))) == whole


@given(st.binary(max_size=200), st.data())
def test_any_bytes_at_all_end_in_an_answer_or_a_typed_error(noise: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(noise)))
    body = noise[:start] + b"".join(map(encode, answer("ok"))) + noise[start:]
    updates, error = outcome(body)
    assert error is not None or any("Finished" in update for update in updates)


@settings(max_examples=scaled(40))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_document_of_any_shape_is_an_answer_or_a_typed_error(value: Any) -> None:
    for body in ({"choices": value}, {"choices": [value]}, {"choices": [{"message": value, "finish_reason": "stop"}]}):
        updates, error = outcome(json.dumps(body).encode())
        assert error is not None or any("Finished" in update for update in updates)
