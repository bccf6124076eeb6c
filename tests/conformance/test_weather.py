"""Rough weather: it adds and cuts, and whoever bears it gets the conversation as it was."""

from collections import Counter
from typing import Any

import pytest

from sidecar.cli.conformance.conversations import Line, conversations
from sidecar.cli.conformance.cutting import Cutter
from sidecar.cli.conformance.rules import check
from sidecar.cli.conformance.weather import REQUEST_ID, Weather, calmed, is_weather

Json = dict[str, Any]
ALL = {conversation.name: conversation for conversation in conversations()}


def is_added(message: Json) -> bool:
    return is_weather(message.get("method")) or is_weather(message.get("params", {}).get("type"))


def weathered(lines: list[Line]) -> list[Line]:
    """A conversation as its client sees it, answers to the unknown request included."""
    weather, found = Weather(), list[Line]()

    def add(kind: Any, value: Any) -> None:
        found.append(Line(kind, value, len(found) + 1))

    for line in lines:
        if line.kind != "←":
            add(line.kind, line.value)
            weather = Weather() if line.kind == "kill" else weather
            continue
        for message in weather.around({"jsonrpc": "2.0", **line.value}):
            add("←", message)
            if message.get("id") == REQUEST_ID:
                add("→", {"id": REQUEST_ID, "error": {"code": -32601, "message": "no"}})
    return found


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_it_adds_breaks_no_rule_and_what_was_there_comes_as_it_was(name: str) -> None:
    lines = list(ALL[name].lines)
    rough = weathered(lines)

    before = Counter((finding.side, finding.text) for finding in check(lines))
    assert Counter((finding.side, finding.text) for finding in check(rough)) == before

    came = [calmed(line.value) for line in rough if line.kind == "←" and not is_added(line.value)]
    for message, line in zip(came, (line for line in lines if line.kind == "←"), strict=True):
        expected = {"jsonrpc": "2.0", **line.value}
        if expected.get("params", {}).get("ephemeral"):  # which make room for those that were added
            message["params"]["sub"] = expected["params"]["sub"]
        assert message == expected


def test_it_brings_an_unknown_notification_request_event_and_field() -> None:
    rough = [line.value for line in weathered(list(ALL["script"].lines)) if line.kind == "←"]

    assert [message["method"] for message in rough if is_weather(message.get("method")) and "id" not in message]
    assert [message["id"] for message in rough if is_weather(message.get("method")) and "id" in message] == [REQUEST_ID]
    assert [message for message in rough if is_weather(message.get("params", {}).get("type"))]
    assert all(any(map(is_weather, message)) for message in rough if not is_added(message))


def test_ephemeral_events_are_numbered_one_by_one_whatever_is_added() -> None:
    numbers = Counter[int]()
    for line in weathered(list(ALL["streamed_run"].lines)):
        event = line.value.get("params", {}) if line.kind == "←" else {}
        if event.get("ephemeral"):
            numbers[event["seq"]] += 1
            assert event["sub"] == numbers[event["seq"]]
    assert numbers


@pytest.mark.parametrize("messages", [[b"{}\n" * 3], [b"x" * 900, b"y", b"z" * 30], [b'{"a": "\xe6\xb0\xb4"}\n'] * 3])
def test_messages_are_cut_within_and_lose_nothing(messages: list[bytes]) -> None:
    pieces = list[bytes]()
    cutter = Cutter(pieces.append)
    for message in messages:
        cutter.put(message)
    cutter.finish()

    assert b"".join(pieces) == b"".join(messages)
    assert len(pieces[0]) < len(messages[0])


def test_a_character_of_several_bytes_is_cut_in_two() -> None:
    pieces = list[bytes]()
    cutter = Cutter(pieces.append)
    cutter.put('{"water": "水"}'.encode())
    cutter.finish()

    assert pieces[0].endswith(b'"\xe6')
