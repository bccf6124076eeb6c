"""The reader of Responses answers, without HTTP: calls out of bad streams, and any cut of the bytes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.messages import FunctionCallBlock
from providers.api.ports import CallRequested, ChatUpdate, Finished, ReasoningDelta, TextDelta
from sidecar.errors import ModelBadStream, SidecarError
from sidecar.models.openai_responses_stream import ResponseReader
from tests.bench.model_script import DONE, Raw, T, Think, encode, event
from tests.bench.response_script import Call, End, Event, Item, Refuse, ResponseScript, Search
from tests.conftest import scaled

DONE_EVENT = {"type": "response.completed", "response": {"id": "resp_1", "output": []}}


def body_of(*items: Item) -> bytes:
    """The bytes of a scripted answer."""
    return b"".join(map(encode, ResponseScript(items, {"id": "resp_1", "model": "fake"}).pieces()))


def read(*pieces: bytes) -> list[ChatUpdate]:
    """All updates of a body that comes in these pieces."""
    reader = ResponseReader("service")
    updates = [update for piece in pieces for update in reader.feed(piece)]
    return updates + list(reader.finish())


def read_events(*events: Any) -> list[ChatUpdate]:
    """All updates of these events and a plain ending."""
    return read(*(event(json.dumps(body)) for body in (*events, DONE_EVENT)))


def calls_of(*events: Any) -> list[FunctionCallBlock]:
    """The calls of these events."""
    return [update.call for update in read_events(*events) if isinstance(update, CallRequested)]


def outcome(*pieces: bytes) -> tuple[list[str], str | None]:
    """The updates with minted ids masked, and the kind of the error."""
    reader = ResponseReader("service")
    updates: list[ChatUpdate] = []
    error = None
    try:
        for piece in pieces:
            updates.extend(reader.feed(piece))
        updates.extend(reader.finish())
    except SidecarError as failure:
        error = failure.kind
    return [re.sub(r"call_[0-9a-f]{24}", "call_minted", str(update)) for update in updates], error


def added(call_id: str | None, index: int | None, item_id: str | None, name: str | None = "menu") -> dict[str, Any]:
    """The announcement of a call; a field that is `None` is left out."""
    return _item("added", call_id, index, item_id, name, "")


def done(
    call_id: str | None, index: int | None, item_id: str | None, arguments: Any, name: str | None = "menu"
) -> dict[str, Any]:
    """The end of a call."""
    return _item("done", call_id, index, item_id, name, arguments)


def delta(index: int | None, item_id: str | None, text: str) -> dict[str, Any]:
    """Some more of a call's arguments."""
    return _arguments("delta", index, item_id, delta=text)


def whole(index: int | None, item_id: str | None, text: str) -> dict[str, Any]:
    """A call's whole arguments."""
    return _arguments("done", index, item_id, arguments=text)


def _item(
    kind: str, call_id: str | None, index: int | None, item_id: str | None, name: str | None, arguments: Any
) -> Any:
    fields = {"type": "function_call", "call_id": call_id, "id": item_id, "name": name, "arguments": arguments}
    item = {key: value for key, value in fields.items() if value is not None}
    return {"type": f"response.output_item.{kind}", "item": item} | _at(index)


def _arguments(kind: str, index: int | None, item_id: str | None, **fields: str) -> Any:
    where = _at(index) | ({} if item_id is None else {"item_id": item_id})
    return {"type": f"response.function_call_arguments.{kind}", **where, **fields}


def _at(index: int | None) -> dict[str, int]:
    return {} if index is None else {"output_index": index}


MEAT, VEG = '{"kind":"meat"}', '{"kind":"veg"}'


@pytest.mark.parametrize(
    "events",
    [
        [done("a", 0, "i0", MEAT), done("b", 1, "i1", VEG)],
        [done("a", None, None, MEAT), done("b", None, None, VEG)],
        [done("a", 0, None, {"kind": "meat"}), done("b", 0, None, {"kind": "veg"})],
        [added("a", 0, "i0"), added("b", 1, "i1"), whole(1, "i1", VEG), whole(0, "i0", MEAT)],
        [added("a", 0, "i0"), added("b", 1, "i1"), delta(0, "x", MEAT), delta(1, "y", VEG)],
        [added("a", 0, "i0"), added("b", 0, "i1"), delta(0, "i0", MEAT), delta(0, "i1", VEG)],
        [added("a", 0, None), delta(None, None, MEAT), added("b", 1, None), delta(None, None, VEG)],
        [added("a", 0, "i0"), delta(0, "i0", '{"no'), done("a", 0, "i0", MEAT), done("b", 1, "i1", VEG)],
        [added("a", 0, "1"), whole(0, "2", MEAT), done("a", 0, "3", MEAT), done("b", 1, "4", VEG)],
        [added("a", 0, "i0"), done("a", 0, "i0", MEAT), done("a", 0, "i0", MEAT), done("b", 1, "i1", VEG)],
        [added(None, 0, "i0", None), delta(0, "i0", MEAT), done("a", 0, "i0", ""), done("b", 1, "i1", VEG)],
        [added("a", 0, "i0"), added("b", 1, "i1"), done("a", 0, "i0", MEAT), whole(1, "i1", VEG), delta(1, "i1", "{")],
        [added("a", 5, "i0"), done("a", 0, "i9", MEAT), done("b", 1, "i1", VEG)],
        [added("a", 0, "i0"), added("b", 0, "i1"), done(None, 0, "i0", MEAT), done(None, 0, "i1", VEG)],
        [done("a", 0, "i0", MEAT), done("a", 0, "i9", MEAT), done("b", 1, "i1", VEG)],
        [added(None, 0, None), done("a", 0, "i0", MEAT), done("b", 1, "i1", VEG)],
    ],
    ids=[
        "done-only", "no-places", "one-index-objects", "out-of-order", "changing-ids", "one-index", "no-places-deltas",
        "done-counts-more", "an-id-each-event", "told-twice", "facts-at-the-end", "delta-after-the-end", "call-id-only",
        "item-id-only", "told-twice-with-another-id", "index-only",
    ],
)  # fmt: skip
def test_two_calls_stay_two_whatever_the_events_say_of_their_place(events: list[Any]) -> None:
    calls = calls_of(*events)
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        ("a", "menu", {"kind": "meat"}),
        ("b", "menu", {"kind": "veg"}),
    ]


def test_calls_without_ids_or_with_the_same_get_their_own() -> None:
    for call_id in (None, "same"):
        calls = calls_of(done(call_id, 0, "i0", MEAT), done(call_id, 1, "i1", VEG))
        assert [call.arguments for call in calls] == [{"kind": "meat"}, {"kind": "veg"}]
        assert len({call.call_id for call in calls} - {""}) == 2


@pytest.mark.parametrize("text", ['{"a":', "[1]", '"x"', "nonsense", '{"a":1e999}', '{"a":"\\u0000"}', "{}{}"])
def test_arguments_that_are_no_object_are_kept_as_text(text: str) -> None:
    (call,) = calls_of(done("c1", 0, "i0", text))
    assert (call.arguments, call.raw_arguments) == ({}, text)


def test_a_call_without_a_name_is_no_answer() -> None:
    with pytest.raises(ModelBadStream):
        calls_of(done("c1", 0, "i0", "{}", name=None))


def test_the_ending_counts_where_the_events_told_nothing() -> None:
    output = [
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "c1", "name": "menu", "arguments": "{}"},
    ]
    updates = read(event(json.dumps({"type": "response.completed", "response": {"output": output}})))
    assert updates[:2] == [ReasoningDelta("hm"), TextDelta("no")]
    assert isinstance(updates[2], CallRequested)
    assert updates[3] == Finished("refusal")


def test_the_ending_repeats_and_adds_nothing() -> None:
    updates = read(body_of(Think("hm"), "yes", Call("c1", "menu"), End()))
    assert [type(update) for update in updates] == [ReasoningDelta, TextDelta, CallRequested, Finished]


def test_a_call_that_the_ending_tells_under_another_id_is_still_one() -> None:
    call = {"type": "function_call", "call_id": "other", "id": "i9", "name": "menu", "arguments": "{}"}
    ending = {"type": "response.completed", "response": {"output": [{"type": "reasoning"}, call]}}
    assert [call.call_id for call in calls_of(done("a", 0, "i0", "{}"), ending)] == ["a"]


def test_nothing_after_the_ending_counts() -> None:
    late = {"type": "response.output_text.delta", "delta": "late"}
    for between in (b"\n\n", b"\n"):
        body = body_of("a", End()).rstrip() + between + event(json.dumps(late)) + b"data: {nonsense\n\n"
        assert [update for update in read(body) if isinstance(update, TextDelta)] == [TextDelta("a")]


def test_text_with_halves_of_surrogate_pairs_is_joined_or_repaired() -> None:
    updates = read(body_of("bad \udc88 tail", "\ud83e", "\udd5f!\0", "\ud83e"))
    text = "".join(update.text for update in updates if isinstance(update, TextDelta))
    assert text == "bad \ufffd tail🥟!\ufffd\ufffd"


def test_events_that_nobody_knows_are_passed_over() -> None:
    unknown = [{"type": "response.new.delta", "delta": "x"}, {"type": "keepalive"}, {}, {"type": 3}]
    assert read_events(*unknown) == [Finished("stop", None, None, "resp_1")]


TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
PLACES = st.sampled_from([None, 0, 1]), st.sampled_from([None, "i0", "i1"])
IDS = st.sampled_from([None, "a", "b"])
ITEMS = st.one_of(
    TEXTS,
    TEXTS.map(T),
    TEXTS.map(Think),
    TEXTS.map(Refuse),
    st.builds(Call, st.sampled_from(["a", "b"]), st.sampled_from(["", "f"]), TEXTS, st.integers(1, 4)),
    st.just(Search("x")),
    st.builds(added, IDS, *PLACES).map(Event),
    st.builds(done, IDS, *PLACES, st.sampled_from(["", "{}", '{"x":', '"é🥟"', {"x": 1}, 7])).map(Event),
    st.builds(delta, *PLACES, st.sampled_from(["", "{}", '{"x":'])).map(Event),
    st.builds(whole, *PLACES, st.sampled_from(["", "{}", '{"x":'])).map(Event),
    st.builds(End, st.sampled_from(["completed", "incomplete", "failed", "cancelled", "odd"])),
    st.sampled_from(
        [
            b": ping\n\n", b"\n\n", b"\r\n", b"\r", b"event: x\n", b"data:", b"data: [DONE]\n\n", b"data: {bad\n\n",
            b'data: {"error":{"code":429}}\n\n', b'data: {"type":"error","code":"x"}\r\n\r\n', b"\xef\xbb\xbf",
            b'data: {"type":"response.output_text.delta",\r\ndata: "delta":"a"}\r\n\r\n', b"data: 1\n",
        ]
    ).map(Raw),
    st.just(DONE),
)  # fmt: skip


@given(items=st.lists(ITEMS, max_size=8), data=st.data())
def test_any_cut_of_the_bytes_gives_the_same_answer(items: list[Any], data: st.DataObject) -> None:
    body = body_of(*items)
    places = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=12)))
    cut = [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]
    expected = outcome(body)
    assert outcome(*cut) == expected
    assert outcome(*(body[place : place + 1] for place in range(len(body)))) == expected


@given(st.binary(max_size=200), st.data())
def test_any_bytes_at_all_end_in_an_answer_or_a_typed_error(noise: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(noise)))
    updates, error = outcome(noise[:start] + body_of("ok") + noise[start:])
    assert error is not None or "Finished" in updates[-1]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KNOWN_FIELDS = (
    "delta", "text", "item", "item_id", "output_index", "arguments", "response", "id", "call_id", "name", "output",
    "content", "summary", "status", "error", "incomplete_details", "reason", "usage", "conversation", "model", "store",
)  # fmt: skip
ODD = st.recursive(ANYTHING, lambda inner: st.dictionaries(st.sampled_from(KNOWN_FIELDS), inner, max_size=4))
KINDS = st.sampled_from(
    [
        "completed", "incomplete", "failed", "created", "output_item.added", "output_item.done", "output_text.delta",
        "function_call_arguments.delta", "function_call_arguments.done", "refusal.delta", "reasoning_text.delta",
    ]
)  # fmt: skip


@settings(max_examples=scaled(200))
@given(KINDS, st.dictionaries(st.sampled_from(KNOWN_FIELDS), ODD, max_size=5))
def test_events_and_documents_of_any_shape_end_in_an_answer_or_a_typed_error(kind: str, fields: dict[str, Any]) -> None:
    odd = {"type": f"response.{kind}", **fields}
    item = {"type": "response.output_item.done", "item": {"type": "function_call", **fields}}
    streams = [event(json.dumps(odd)) + event(json.dumps(item)) + event(json.dumps(DONE_EVENT))]
    for body in (*streams, json.dumps({"status": "completed", **fields}).encode()):
        updates, error = outcome(body)
        assert error is not None or "Finished" in updates[-1]
