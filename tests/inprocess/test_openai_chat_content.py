"""How content blocks look to an endpoint, and what of a message is never sent."""

from typing import Any

import pytest

from protocol.messages import Message
from sidecar.models.openai_content import chat_messages

CALL = {"type": "functionCall", "callId": "c1", "name": "f", "arguments": {"a": "é"}}


def sent(*blocks: dict[str, Any], role: str = "user") -> list[dict[str, Any]]:
    """The request's messages for one message of these blocks."""
    return chat_messages("", [Message.model_validate({"role": role, "content": blocks})])


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (text_part("hi"), "hi"),
        ({"type": "resource_link", "uri": "file:///a.py", "name": "a.py"}, "[a.py](file:///a.py)"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x = 1"}},
            '\n<resource uri="file:///a">\nx = 1\n</resource>\n',
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/zip", "blob": "AA=="}},
            "[file:///b: application/zip, not shown]",
        ),
    ],
)
def test_what_is_text_is_a_plain_string(block: dict[str, Any], text: str) -> None:
    assert sent(block) == [{"role": "user", "content": text}]


def test_text_that_a_link_interrupts_stays_one_sentence() -> None:
    link = {"type": "resource_link", "uri": "u:a", "name": "a"}
    assert sent(text_part("see "), link, text_part(" please"))[0]["content"] == "see [a](u:a) please"


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ),
        (
            {"type": "audio", "data": "AA==", "mimeType": "audio/mpeg"},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        ),
        (
            {"type": "resource", "resource": {"uri": "u:a", "mimeType": "image/gif", "blob": "AA=="}},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AA=="}},
        ),
    ],
)
def test_media_are_parts_of_their_own(block: dict[str, Any], part: dict[str, Any]) -> None:
    assert sent(text_part("look"), block) == [{"role": "user", "content": [text_part("look"), part]}]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "text": "secret"},
        {"type": "usage", "usage": {"inputTokens": 1}},
        {"type": "error", "kind": "modelAuth", "message": "secret"},
        {"type": "approvalResponse", "requestId": "r", "approved": True},
        {"type": "approvalRequest", "requestId": "r", "callId": "c", "name": "f", "arguments": {}},
        {"type": "x-new", "text": "secret"},
    ],
)
def test_what_a_model_may_not_see_is_not_sent(role: str, block: dict[str, Any]) -> None:
    assert sent(block, role=role) == []
    assert sent(block, text_part("hi"), role=role) == [{"role": role, "content": "hi"}]


def test_blank_input_is_sent_as_it_is() -> None:
    assert sent(text_part("")) == [{"role": "user", "content": ""}]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [text_part("a"), text_part("b")]}, "ab"),
        ({"content": [], "structuredContent": {"city": "Gänt"}}, '{"city": "Gänt"}'),
        ({"content": [], "isError": True}, "Error"),
        ({"content": []}, ""),
        ({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}, "[image: image/png, not shown]"),
    ],
)
def test_results_are_text(result: dict[str, Any], text: str) -> None:
    history = [
        Message.model_validate({"role": "assistant", "content": [CALL]}),
        Message.model_validate({"role": "tool", "content": [{"type": "functionResult", "callId": "c1"} | result]}),
    ]
    called, answered = chat_messages("", history)
    assert called["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": "é"}'}
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": text}
