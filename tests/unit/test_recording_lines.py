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


@pytest.mark.parametrize(
    "content",
    [
        {"password": CANARY},
        {"deep": [{"authToken": CANARY}]},
        {"API-Key": CANARY},
        {"secret": [CANARY]},
        {"list": [{"name": "X_TOKEN", "value": CANARY}]},
        {"properties": {"token": {"type": "string", "default": CANARY}}},
    ],
)
def test_a_value_that_is_called_a_secret_is_one_wherever_it_stands(content: Json) -> None:
    answer = {"jsonrpc": "2.0", "id": "h1", "result": {"action": "accept", "content": content}}
    state = request("updateSession", {"statePatch": {"session": content}, "_meta": content, "metadata": content})
    for lines in (said(answer), said(state), answered({"jsonrpc": "2.0", "id": 1, "result": {"state": content}})):
        assert CANARY not in json.dumps(lines[0].value)
        assert REMOVED in json.dumps(lines[0].value)


def test_what_is_called_a_secret_is_known_from_then_on() -> None:
    secrets = Secrets()
    said(request("run", {"properties": {"authToken": CANARY}}), secrets)
    assert secrets.clean(CANARY) == REMOVED


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("$/progress", {"token": "task-number-1", "value": {"text": "a"}}),
        ("window/workDoneProgress/create", {"token": "task-number-1"}),
        ("run", {"workDoneToken": "task-number-1", "partialResultToken": "task-number-2"}),
        ("run", {"options": {"maxTokens": 5, "tokenizer": "o200k"}, "properties": {"password": "", "token": None}}),
    ],
)
def test_a_name_that_only_sounds_like_a_secret_keeps_its_value(method: str, params: Json) -> None:
    assert said(request(method, params)) == [Line("→", {"id": 1, "method": method, "params": params})]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"args": ["--token", CANARY, "-v"]}, {"args": ["--token", REMOVED, "-v"]}),
        ({"args": [f"--api-key={CANARY}", "x"]}, {"args": [f"--api-key={REMOVED}", "x"]}),
        ({"args": ["--token", "--verbose"]}, {"args": ["--token", "--verbose"]}),
        ({"url": "redis://:pw@host/0"}, {"url": f"redis://{REMOVED}@host/0"}),
        ({"url": f"https://h/x?sig={CANARY}&a=b"}, {"url": f"https://h/x?sig={REMOVED}&a=b"}),
        ({"base_url": f"https://{CANARY}@h/v1"}, {"base_url": f"https://{REMOVED}@h/v1"}),
    ],
)
def test_arguments_and_urls_in_settings_keep_their_names_only(given: Json, shown: Json) -> None:
    secrets = Secrets()
    for params in ({"mcpServers": [given]}, {"initializationOptions": {"sidecar": {"config": {"deep": given}}}}):
        (line,) = said(request("createSession", params), secrets)
        assert json.dumps(shown)[1:-1] in json.dumps(line.value)
    answer = {"jsonrpc": "2.0", "id": "h1", "result": [{"sidecar": given}]}
    assert said(answer)[0].value["result"] == [{"sidecar": shown}]


def test_free_form_json_keeps_what_is_only_called_like_a_setting() -> None:
    arguments = {"env": {"A": "b"}, "headers": {"C": "d"}, "url": "https://h/?sig=abcdefgh"}
    params = {"input": [{"role": "user", "content": [{"type": "functionCall", "arguments": arguments}]}]}
    (line,) = said(request("run", params))
    assert line.value["params"] == params


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","params":{"initializationOptions":{"sidecar":{"secrets":{"a":"canary-value-1"',
        b'{"jsonrpc":"2.0","params":{"\\u0073ecrets":{"a":"canary-value-1"',
        b'{"functionInvocationKwargs": {"x": "canary-value-1"} oops',
        b'{"jsonrpc":"2.0","params":{"mcp":{"auth":"canary-value-1"',
        b"Cookie: session=canary-value-1 {",
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


def test_a_long_batch_is_cut_and_gives_no_secret_away() -> None:
    batch = [request("run", {"password": CANARY, "input": f"sk-{'a' * 30}"}), "x" * 2 * LONGEST]
    comment, line = said(batch)
    assert comment.kind == "#"
    assert len(line.value) == LONGEST_TEXT
    assert line.value.count(REMOVED) == 2


# ---- long messages ---------------------------------------------------------------------------------------------


def test_a_long_event_keeps_its_place_in_the_stream() -> None:
    envelope = {"sessionId": "s", "seq": 7, "type": "message.completed", "prevSeq": 6}
    message = {"method": "run/event", "params": {**envelope, "data": {"text": "x" * LONGEST}}}

    comment, line = answered({"jsonrpc": "2.0", **message})

    assert comment.kind == "#"
    assert line.value == {"method": "run/event", "params": {**envelope, "data": ANY}}


def test_a_secret_in_a_part_that_is_left_out_is_known_from_then_on() -> None:
    secrets = Secrets()
    servers = [{"command": "x" * LONGEST, "env": {"A": CANARY}}]
    _, line = said(request("createSession", {"mcpServers": servers, "_meta": "sk-abcdefghijklmnopqrst"}), secrets)
    assert line.value["params"] == {"mcpServers": ANY, "_meta": REMOVED}
    assert secrets.clean(CANARY) == REMOVED


def test_a_long_answer_keeps_its_id() -> None:
    _, line = answered({"jsonrpc": "2.0", "id": 5, "result": {"messages": ["x" * 1000] * 2000, "nextCursor": "c"}})
    assert line.value == {"id": 5, "result": {"messages": ANY, "nextCursor": "c"}}


def test_a_long_message_of_many_small_parts_keeps_who_it_is() -> None:
    _, line = said(request("importSession", {f"m{number}": "x" * 100 for number in range(20_000)}))
    assert line.value == {"id": 1, "method": "importSession", "params": ANY}
