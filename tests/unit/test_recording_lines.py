"""What a recording holds of one message: that of the wire, without its secrets."""

import json
from typing import Any

import pytest

from sidecar.config.known_secrets import REMOVED, Secrets
from sidecar.server.recording.lines import ANY, LONGEST, LONGEST_TEXT, Line, client_lines, sent, sidecar_lines

CANARY = "canary-value-1"
Json = dict[str, Any]


def said(message: Any, secrets: Secrets | None = None) -> list[Line]:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return list(client_lines(body, secrets or Secrets()))


def answered(message: Json, secrets: Secrets | None = None) -> list[Line]:
    body = json.dumps(message).encode()
    return list(sidecar_lines(sent(body), len(body), secrets or Secrets()))


def request(method: str, params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_a_message_stands_without_its_version() -> None:
    message = request("run", {"input": "hello", "n": 1.5})
    assert said(message) == [Line("→", {"id": 1, "method": "run", "params": {"input": "hello", "n": 1.5}})]
    assert answered({"jsonrpc": "2.0", "id": 1, "result": None}) == [Line("←", {"id": 1, "result": None})]


def test_a_line_is_one_line_of_json() -> None:
    encoded = Line("→", {"text": "a\nb ü"}).encoded()
    assert encoded == '{"→":{"text":"a\\nb ü"}}\n'.encode()


@pytest.mark.parametrize(
    "body", ["not JSON", '{"jsonrpc":"2.0",', "[1]", '"text"', '{"id":7,"method":"x"}', '{"n":1e999}', "\ufeff"]
)
def test_what_is_no_message_stands_as_the_text_that_came(body: str) -> None:
    assert said(body.encode()) == [Line("→", body)]


def test_bytes_that_are_no_text_are_said_to_be_none() -> None:
    comment, line = said(b"\xff\xfe")
    assert (comment.kind, line) == ("#", Line("→", "\ufffd\ufffd"))


def test_a_long_text_that_is_no_message_is_cut() -> None:
    comment, line = said(b"x" * (LONGEST_TEXT + 1))
    assert comment.kind == "#"
    assert str(LONGEST_TEXT + 1) in comment.value
    assert line == Line("→", "x" * LONGEST_TEXT)


# ---- secrets ---------------------------------------------------------------------------------------------------


def test_the_secrets_of_initialize_are_removed_and_known_from_then_on() -> None:
    secrets = Secrets()
    block = {"secrets": {"a": CANARY, "b": "x"}, "clientId": "me"}

    (line,) = said(request("initialize", {"initializationOptions": {"sidecar": block}}), secrets)

    assert line.value["params"]["initializationOptions"]["sidecar"] == {
        "secrets": {"a": REMOVED, "b": REMOVED},
        "clientId": "me",
    }
    (later,) = said(request("run", {"input": f"is it {CANARY}?"}), secrets)
    assert later.value["params"]["input"] == f"is it {REMOVED}?"


def test_kwargs_keep_their_names_only() -> None:
    kwargs = {"user": "ana", "deep": {"x": 1}, "none": None}
    hidden = dict.fromkeys(kwargs, REMOVED)

    (run,) = said(request("run", {"input": "a", "functionInvocationKwargs": kwargs, "clientKwargs": kwargs}))
    (call,) = answered(request("host/callTool", {"name": "t", "kwargs": kwargs}))

    assert run.value["params"] == {"input": "a", "functionInvocationKwargs": hidden, "clientKwargs": hidden}
    assert call.value["params"] == {"name": "t", "kwargs": hidden}


def test_a_header_among_the_kwargs_is_known_from_then_on() -> None:
    secrets = Secrets()
    said(request("run", {"clientKwargs": {"extraHeaders": {"X-Any": CANARY}}}), secrets)
    assert secrets.clean(CANARY) == REMOVED


@pytest.mark.parametrize(
    "params",
    [
        {"mcpServers": [{"command": "c", "env": {"A": CANARY}, "headers": {"B": CANARY}}]},
        {"mcpServers": [{"command": "c", "env": [{"name": "A", "value": CANARY}]}]},
        {"contextProviders": [{"type": "mem0", "config": {"apiKey": CANARY}}]},
        {"agent": {"contextProviders": [{"type": "x", "config": {"deep": [{"password": CANARY}]}}]}},
        {"initializationOptions": {"sidecar": {"config": {"endpoints": {"e": {"headers": {"X": CANARY}}}}}}},
        {"settings": {"sidecar": {"endpoints": {"e": {"config": {"token": CANARY}}}}}},
        {"input": "see https://user:canary-value-1@host/"},
    ],
)
def test_settings_hold_no_secrets(params: Json) -> None:
    (line,) = said(request("createSession", params))
    assert CANARY not in json.dumps(line.value)
    assert REMOVED in json.dumps(line.value)


def test_the_names_in_settings_stay() -> None:
    servers = [{"command": "c", "env": [{"name": "A", "value": CANARY}], "headers": {"B": CANARY}}]
    (line,) = said(request("createSession", {"mcpServers": servers}))
    assert line.value["params"]["mcpServers"] == [
        {"command": "c", "env": [{"name": "A", "value": REMOVED}], "headers": {"B": REMOVED}}
    ]


def test_free_form_json_keeps_what_is_only_called_like_a_setting() -> None:
    arguments = {"env": {"A": "b"}, "headers": {"C": "d"}, "token": "e"}
    params = {"input": [{"role": "user", "content": [{"type": "functionCall", "arguments": arguments}]}]}
    (line,) = said(request("run", params))
    assert line.value["params"] == params


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","params":{"initializationOptions":{"sidecar":{"secrets":{"a":"canary-value-1"',
        b'{"jsonrpc":"2.0","params":{"\\u0073ecrets":{"a":"canary-value-1"',
        b'{"functionInvocationKwargs": {"x": "canary-value-1"} oops',
        b'[{"jsonrpc":"2.0","method":"run","params":{"clientKwargs":{"a":"canary-value-1"}}}]',
        b'{"method":"initialize","params":{"initializationOptions":{"sidecar":{"secrets":{"a":"canary-value-1"}}}}}',
    ],
)
def test_what_is_no_message_gives_no_secret_away_either(body: bytes) -> None:
    lines = said(body)
    assert CANARY not in "".join(str(line.value) for line in lines)
    assert lines[-1].kind == "→"


def test_a_known_secret_is_removed_from_what_we_send() -> None:
    (line,) = answered({"jsonrpc": "2.0", "id": 1, "result": {"text": f"<{CANARY}>"}}, Secrets([CANARY]))
    assert line.value == {"id": 1, "result": {"text": f"<{REMOVED}>"}}


# ---- long messages ---------------------------------------------------------------------------------------------


def test_a_long_event_keeps_its_place_in_the_stream() -> None:
    envelope = {"sessionId": "s", "seq": 7, "type": "message.completed", "prevSeq": 6}
    message = {"method": "run/event", "params": {**envelope, "data": {"text": "x" * LONGEST}}}

    comment, line = answered({"jsonrpc": "2.0", **message})

    assert comment.kind == "#"
    assert line.value == {"method": "run/event", "params": {**envelope, "data": ANY}}


def test_a_long_answer_keeps_its_id() -> None:
    _, line = answered({"jsonrpc": "2.0", "id": 5, "result": {"messages": ["x" * 1000] * 2000, "nextCursor": "c"}})
    assert line.value == {"id": 5, "result": {"messages": ANY, "nextCursor": "c"}}


def test_a_long_message_of_many_small_parts_keeps_who_it_is() -> None:
    _, line = said(request("importSession", {f"m{number}": "x" * 100 for number in range(20_000)}))
    assert line.value == {"id": 1, "method": "importSession", "params": ANY}
