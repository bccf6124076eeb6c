"""A secret that comes in pieces is in no recording, and nothing else is changed or put out of order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config.known_secrets import REMOVED, Secrets
from sidecar.server.recording.deltas import MOST_LINES, Deltas
from sidecar.server.recording.lines import Line, sidecar_lines

Json = dict[str, Any]

KNOWN = "hunter-two"
PHRASE = "correct horse battery staple"
LINES = "first-line\nsecond-line"
BY_FORM = ["sk-abcdefghijklmnopqrst", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "AKIAABCDEFGHIJKLMNOP"]
BLOCK = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END PRIVATE KEY-----"


def event(kind: str, data: Json, **more: Any) -> Json:
    return {
        "method": "run/event",
        "params": {"sessionId": "s", "runId": "r", "seq": 1, "type": kind, **more, "data": data},
    }


def delta(text: str, message: str = "m") -> Json:
    return event("message.delta", {"messageId": message, "contentIndex": 0, "text": text})


def recorded(messages: list[Json], secrets: Secrets) -> list[Line]:
    """The lines of a whole recording."""
    deltas = Deltas(secrets)
    lines: list[Line] = []
    for message in messages:
        (line,) = sidecar_lines(message, 100, secrets)
        lines += deltas.take(line, message)
    return [*lines, *deltas.rest()]


def text_of(lines: list[Line], message: str = "m") -> str:
    found = [line.value["params"]["data"] for line in lines if line.value["params"]["type"] == "message.delta"]
    return "".join(data["text"] for data in found if data["messageId"] == message)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces, as a model may send it."""
    places = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=len(text))))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if a < b]


words = st.lists(st.sampled_from(["the", "key", "is", "it", "说明", "a-b", "x,y.", "\n", "Zürich", "'q'"]), max_size=6)


@given(before=words, after=words, secret=st.sampled_from([KNOWN, PHRASE, LINES, *BY_FORM]), data=st.data())
def test_no_cut_of_a_text_gives_its_secret_away(
    before: list[str], after: list[str], secret: str, data: st.DataObject
) -> None:
    text = " ".join([*before, secret, *after])
    came = [delta(piece) for piece in data.draw(cut(text))]

    lines = recorded([*came, event("message.completed", {"messageId": "m"})], Secrets([KNOWN, PHRASE, LINES]))

    shown = text_of(lines)
    assert secret not in shown
    assert "first-line" not in shown
    assert REMOVED in shown
    assert all(word in shown for word in (*before, *after) if word.isascii())
    assert len(lines) == len(came) + 1


@given(data=st.data())
def test_a_key_in_a_block_is_taken_out_wherever_it_is_cut(data: st.DataObject) -> None:
    came = [delta(piece) for piece in data.draw(cut(f"here: {BLOCK}"))]

    shown = text_of(recorded([*came, delta(" and"), delta(" more")], Secrets()))

    assert "MIIEvQIBADAN" not in shown
    assert "BgkqhkiG9w0B" not in shown
    assert shown.startswith("here: ")
    assert shown.endswith(" and more")


def test_a_word_that_only_the_words_before_it_give_away_is_taken_out() -> None:
    came = [delta(piece) for piece in ("The", " password", " is", " swordfish7", " today")]
    assert text_of(recorded(came, Secrets())) == f"The password is {REMOVED} today"


@pytest.mark.parametrize("blanks", ["", " ", "\n" * 70, " \n" * 1000])
def test_a_name_gives_its_value_away_across_blanks(blanks: str) -> None:
    came = [delta(piece) for piece in ('{"password":', blanks, '"swordfish7"', "}")]
    assert text_of(recorded(came, Secrets())) == f'{{"password":{blanks}"{REMOVED}"}}'


def test_a_value_in_quotes_is_taken_out_with_its_blanks() -> None:
    shown = text_of(recorded([delta('PASSWORD="sword'), delta("fish "), delta('seven" '), delta("x")], Secrets()))
    assert "sword" not in shown
    assert "seven" not in shown


def test_a_known_secret_of_any_length_is_waited_for() -> None:
    secret = "".join(f"{number:x}x7Kd9LmPq" for number in range(5000))
    came = [delta(secret[start : start + 1000]) for start in range(0, len(secret), 1000)]
    assert text_of(recorded([delta("it is "), *came, delta(" now")], Secrets([secret]))) == f"it is {REMOVED} now"


@given(text=st.text(max_size=60), data=st.data())
def test_a_text_without_secrets_comes_out_in_the_pieces_in_which_it_came(text: str, data: st.DataObject) -> None:
    came = [delta(piece) for piece in data.draw(cut(text))] if text else []

    lines = recorded(came, Secrets([KNOWN]))

    assert [line.value for line in lines] == came


@pytest.mark.parametrize(
    ("kind", "owner"), [("message.delta", "messageId"), ("reasoning.delta", "messageId"), ("tool.delta", "callId")]
)
def test_every_kind_of_delta_is_looked_at(kind: str, owner: str) -> None:
    pieces = [event(kind, {owner: "x", "text": text}) for text in ("it is hunt", "er-two", " now")]
    lines = recorded(pieces, Secrets([KNOWN]))
    assert [line.value["params"]["data"]["text"] for line in lines] == [f"it is {REMOVED}", "", " now"]


def test_the_mirror_of_a_text_in_progress_notifications_is_looked_at_too() -> None:
    pieces = [{"method": "$/progress", "params": {"token": 1, "value": {"text": text}}} for text in ("hunter", "-two")]
    lines = recorded(pieces, Secrets([KNOWN]))
    assert [line.value["params"]["value"]["text"] for line in lines] == [REMOVED, ""]


def test_two_messages_at_once_are_two_texts() -> None:
    pieces = [delta("hunter", "a"), delta("hunter", "b"), delta(" and", "a"), delta("-two ", "b")]
    lines = recorded(pieces, Secrets([KNOWN]))
    assert (text_of(lines, "a"), text_of(lines, "b")) == ("hunter and", f"{REMOVED} ")


def test_what_comes_behind_a_delta_that_waits_stays_behind_it() -> None:
    deltas = Deltas(Secrets([KNOWN]))
    waits, other = Line("←", delta("hunter")), Line("→", {"id": 1, "method": "getState"})
    assert list(deltas.take(waits, delta("hunter"))) == []
    assert list(deltas.take(other)) == []

    end = event("message.completed", {"messageId": "m"})

    assert list(deltas.take(Line("←", end), end)) == [waits, other, Line("←", end)]
    assert len(deltas) == 0


def test_no_line_waits_for_ever() -> None:
    deltas = Deltas(Secrets())
    first = Line("←", delta("word"))
    assert list(deltas.take(first, delta("word"))) == []

    written = [line for number in range(MOST_LINES) for line in deltas.take(Line("#", f"{number}"))]

    assert written[0] == first
    assert len(written) == MOST_LINES + 1
