"""Bad and odd messages over both framings: each gets its own error, none costs the next message."""

import json
from typing import Any

import pytest

from tests.bench.host import FakeHost
from tests.bench.wire import Framing

BOTH: tuple[Framing, ...] = ("ndjson", "header")
GET_STATE = {"jsonrpc": "2.0", "id": 7, "method": "getState"}


@pytest.fixture(params=BOTH)
async def either(request: pytest.FixtureRequest, start_host: Any) -> FakeHost:
    """A sidecar, once for each framing."""
    return await start_host(framing=request.param)


def framed(host: FakeHost, body: bytes) -> bytes:
    """Any bytes, right or wrong, as one message."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if host.framing == "header" else body + b"\n"


def nested(levels: int) -> list[Any]:
    """A value in a list of lists, so many levels deep."""
    return json.loads("[" * levels + "1" + "]" * levels)


async def serves_on(host: FakeHost) -> bool:
    """Whether the next good message is answered."""
    return "server" in await host.request("getState")


NO_JSON = {
    "cut": b'{"jsonrpc":"2.0","id":1,"method":',
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"getState","params":{"x":"\xff"}}',
    "a bare word": b"getState",
    "two values": b"{} {}",
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"getState","params":{"x":NaN}}',
    "no finite float": b'{"jsonrpc":"2.0","id":1,"method":"getState","params":{"x":1e999}}',
    "no int64": b'{"jsonrpc":"2.0","id":1,"method":"getState","params":{"x":9223372036854775808}}',
    "an id that is no int64": b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"getState"}',
    "201 levels": json.dumps({**GET_STATE, "params": {"x": nested(199)}}).encode(),
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
}


async def test_what_is_no_json_is_a_parse_error_without_an_id(either: FakeHost) -> None:
    for name, body in NO_JSON.items():
        answer = await either.exchange(framed(either, body))
        assert (name, answer["error"]["code"], answer["id"]) == (name, -32700, None)
        assert answer["error"]["data"]["kind"] == "parseError"
        assert await serves_on(either)


async def test_an_int64_and_200_levels_are_taken(host: FakeHost) -> None:
    deep = {**GET_STATE, "id": 2**63 - 1, "params": {"x": nested(198)}}
    assert "result" in await host.exchange(deep)


NO_REQUEST: dict[str, tuple[Any, Any]] = {
    "a batch": ([GET_STATE, {**GET_STATE, "id": 8}], None),
    "an empty batch": ([], None),
    "a string": ("getState", None),
    "a number": (5, None),
    "null": (None, None),
    "no jsonrpc": ({"id": "mine", "method": "getState"}, "mine"),
    "jsonrpc 1.0": ({**GET_STATE, "jsonrpc": "1.0"}, 7),
    "jsonrpc as a number": ({**GET_STATE, "jsonrpc": 2.0}, 7),
    "no method": ({"jsonrpc": "2.0", "id": 7}, 7),
    "a method that is no string": ({**GET_STATE, "method": 5}, 7),
    "a null id": ({**GET_STATE, "id": None}, None),
    "a float id": ({**GET_STATE, "id": 1.5}, None),
    "a whole float id": ({**GET_STATE, "id": 1.0}, None),
    "a bool id": ({**GET_STATE, "id": True}, None),
    "a list id": ({**GET_STATE, "id": [7]}, None),
}


async def test_what_is_no_request_is_answered_once_with_its_own_id_if_it_has_one(either: FakeHost) -> None:
    for name, (message, own_id) in NO_REQUEST.items():
        if isinstance(message, dict | list):
            answer = await either.exchange(message)
        else:  # the first byte has settled the framing by now: a bare value is just a bad message
            answer = await either.exchange(framed(either, json.dumps(message).encode()))
        assert (name, answer["error"]["code"], answer["id"]) == (name, -32600, own_id)
        assert answer["error"]["data"]["kind"] == "invalidRequest"
    count = len(either.messages)
    assert await serves_on(either)
    assert len(either.messages) == count + 1, "something was answered twice"


async def test_string_and_number_ids_are_different_ids(either: FakeHost) -> None:
    either.send({**GET_STATE, "id": "7"})
    either.send(GET_STATE)
    await either.until(lambda: len(either.messages) >= 3)

    assert [message["id"] for message in either.messages[-2:]] == ["7", 7]
    for odd in ("", "ü", 0, -1, "7.0"):
        assert (await either.exchange({**GET_STATE, "id": odd}))["id"] == odd


async def test_params_may_be_missing_or_null_and_are_an_object_else(either: FakeHost) -> None:
    for params in ({}, {"params": None}, {"params": {}}):
        assert "server" in (await either.exchange({**GET_STATE, **params}))["result"]
    for wrong in ([], ["a"], "a", 5, True):
        answer = await either.exchange({**GET_STATE, "params": wrong})
        assert (answer["id"], answer["error"]["code"]) == (7, -32602)


async def test_an_unknown_method_is_told_from_one_that_is_not_there_yet(host: FakeHost) -> None:
    for unknown in ("getStat", "", "workspace/nothing", "host/callTool", "rpc.discover"):
        answer = await host.exchange({**GET_STATE, "method": unknown})
        assert (answer["error"]["code"], answer["error"]["data"]["kind"]) == (-32601, "methodNotFound")


LATER_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("createSession", {"mcpServers": [{"name": "m", "command": "c"}]}),
    ("createSession", {"mode": "plan"}),
    ("createSession", {"additionalDirectories": ["/tmp"]}),
    ("createSession", {"contextProviders": [{"type": "todo"}]}),
    ("createSession", {"agent": {"harness": True}}),
    ("createSession", {"agent": {"compaction": {"strategy": "window"}}}),
    ("resumeSession", {"sessionId": "s", "mcpServers": [{"name": "m", "command": "c"}]}),
]


async def test_a_field_of_a_later_build_is_refused_and_never_ignored(host: FakeHost) -> None:
    await host.create_session(sessionId="s", model="scripted:echo")
    for method, params in LATER_FIELDS:
        refused = await host.refusal(method, params)
        assert (params, refused.kind) == (params, "capabilityRequired")
        assert refused.data["feature"]
    assert await host.resume_session("s")
    assert host.events() == []


WRONG_TYPES: list[tuple[str, dict[str, Any], str]] = [
    ("getState", {"sessionId": 5}, "sessionId"),
    ("getState", {"sessionId": ""}, "sessionId"),
    ("getState", {"sessionId": "s" * 257}, "sessionId"),
    ("getState", {"include": ["hunter2"]}, "include.0"),
    ("getState", {"include": "run"}, "include"),
    ("createSession", {"state": ["hunter2"]}, "state"),
    ("createSession", {"metadata": "hunter2"}, "metadata"),
    ("createSession", {"title": {"hunter2": 1}}, "title"),
    ("createSession", {"cwd": "hunter2/relative"}, "cwd"),
    ("resumeSession", {}, "sessionId"),
    ("resumeSession", {"sessionId": "s", "replayFrom": {"type": "hunter2"}}, "replayFrom"),
    ("run", {"sessionId": "s"}, "input"),
    ("run", {"sessionId": "s", "input": None}, "input"),
    ("run", {"sessionId": "s", "input": 5}, "input"),
    ("run", {"sessionId": "s", "input": [{"type": "text"}]}, "input.0.text"),
    ("run", {"sessionId": "s", "input": [{"role": "hunter2", "content": "x"}]}, "input.0.role"),
    ("run", {"sessionId": "s", "input": [{"role": "user", "content": [{"type": "text"}]}]}, "input.0.content.0.text"),
    ("run", {"sessionId": "s", "input": "x", "runId": 7}, "runId"),
    ("run", {"sessionId": "s", "input": "x", "timeoutMs": 0}, "timeoutMs"),
    ("run", {"sessionId": "s", "input": "x", "whenBusy": "hunter2"}, "whenBusy"),
    ("run", {"sessionId": "s", "input": "x", "options": {"temperature": "hunter2"}}, "options.temperature"),
    ("run", {"sessionId": "s", "input": "x", "responseFormat": "hunter2"}, "responseFormat"),
    ("listSessions", {"limit": 0}, "limit"),
    ("listSessions", {"limit": 0}, "limit"),
    ("listSessions", {"cursor": "hunter2"}, "cursor"),
    ("getHistory", {"sessionId": "s", "cursor": "hunter2"}, "cursor"),
    ("getHistory", {"sessionId": "s", "order": "hunter2"}, "order"),
    ("cancelRun", {"runId": 7}, "runId"),
]


async def test_a_wrong_type_is_named_by_its_path_and_never_echoed(host: FakeHost) -> None:
    await host.create_session(sessionId="s", model="scripted:echo")
    for method, params, path in WRONG_TYPES:
        refused = await host.refusal(method, params)
        assert (method, params, refused.code) == (method, params, -32602)
        assert path in [error["path"] for error in refused.data["errors"]], (params, refused.data)
        assert "hunter2" not in json.dumps([refused.message, refused.data])


MISSPELT: list[tuple[dict[str, Any], str, str]] = [
    ({"agent": {"instruction": "x"}}, "instruction", "instructions"),
    ({"agent": {"options": {"temprature": 1}}}, "temprature", "temperature"),
    ({"agent": {"contextProviders": [{"type": "history", "sourceID": "x"}]}}, "sourceID", "sourceId"),
    ({"contextProviders": [{"type": "static_messages", "onErr": "warn"}]}, "onErr", "onError"),
    ({"contextProviders": [{"type": "structured_memory", "config": {"shcema": {}}}]}, "shcema", "schema"),
    ({"tools": [{"name": "t", "description": "d", "inputschema": {}}]}, "inputschema", "inputSchema"),
]


async def test_an_unknown_key_in_configuration_is_refused_naming_the_nearest(host: FakeHost) -> None:
    for params, wrong, nearest in MISSPELT:
        refused = await host.refusal("createSession", params)
        assert (params, refused.code, refused.kind) == (params, 4015, "configInvalid")
        assert wrong in refused.message
        assert repr(nearest) in refused.message
    near = await host.refusal("createSession", {"contextProviders": [{"type": "structured_memry"}]})
    assert "structured_memory" in near.message


async def test_unknown_fields_elsewhere_are_passed_over(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo", colour="red", _meta={"traceparent": "00"})
    result = await session.run("hi", x_colour="red", options={"colour": "red"}, _meta={"a": 1})
    assert result["text"] == "hi"
    answer = await host.exchange({**GET_STATE, "colour": "red"})
    assert "result" in answer


DATA = {
    "jsonrpc": "2.0",
    "message": {"jsonrpc": "2.0", "id": 1, "method": "exit"},
    "type_name": "Object",
    "type": "text",
    "not an identifier!": {"class": None, "": [[], {}, [None]]},
    "numbers": [2**63 - 1, -(2**63), 1.0, -0.0, 1e22, 5e-324, 0.1],
    "snake_case": {"camelCase": True},
    "text": "饺子 🥟 naïve \u2028",
}


async def test_free_form_json_comes_back_exactly_as_it_was_sent(either: FakeHost) -> None:
    session = await either.create_session(model="scripted:echo", state=DATA, metadata=DATA)
    await session.run([{"role": "user", "content": "hi", "metadata": DATA}])

    state = await session.state()
    history = await either.request("getHistory", {"sessionId": session.id})
    for back in (state["state"], state["session"]["metadata"], history["messages"][0]["metadata"]):
        assert json.dumps(back, sort_keys=True) == json.dumps(DATA, sort_keys=True)


async def test_a_nul_becomes_a_replacement_in_text_and_is_refused_in_data(either: FakeHost) -> None:
    session = await either.create_session(model="scripted:echo", title="a\0b")
    result = await session.run("x\0y")
    assert result["text"] == "x\ufffdy"
    assert await session.history() == [("user", "x\ufffdy"), ("assistant", "x\ufffdy")]
    assert (await session.state())["session"]["title"] == "a\ufffdb"

    for field in ({"state": {"k": ["\0"]}}, {"state": {"\0": 1}}, {"metadata": {"k": {"l": "a\0"}}}):
        refused = await either.refusal("createSession", field)
        assert (refused.code, refused.data["errors"][0]["path"].split(".")[0]) == (-32602, next(iter(field)))
    refused = await either.refusal(
        "run", {"sessionId": session.id, "input": [{"role": "user", "content": "x", "metadata": {"k": "\0"}}]}
    )
    assert refused.code == -32602


async def test_a_lone_surrogate_becomes_a_replacement_once(either: FakeHost) -> None:
    session = await either.create_session(model="scripted:echo", state={"k": "a"})
    body = json.dumps({"sessionId": session.id, "input": "bad \ud83e tail"})  # escaped, as a host's encoder does it
    message = b'{"jsonrpc":"2.0","id":"lone","method":"run","params":' + body.encode() + b"}"
    answer = await either.exchange(framed(either, message))
    assert answer["result"]["text"] == "bad \ufffd tail"
    assert await session.history() == [("user", "bad \ufffd tail"), ("assistant", "bad \ufffd tail")]


# ---- before, after and around the handshake ----------------------------------------------------------------------


@pytest.mark.parametrize("framing", BOTH)
async def test_nothing_is_served_before_initialize(start_host: Any, framing: Framing) -> None:
    host = await start_host(framing=framing, greet=False)
    for method in ("getState", "createSession", "run", "shutdown", "nothing"):
        assert (await host.refusal(method)).code == -32002
    host.notify("initialized")
    host.notify("$/cancelRequest", {"id": 1})

    result = await host.request("initialize")

    assert result["capabilities"]["experimental"]["sidecar"]["protocolVersion"] == 1
    assert await serves_on(host)
    again = await host.refusal("initialize")
    assert (again.code, again.kind) == (-32600, "invalidRequest")
    assert await serves_on(host)


async def test_a_version_that_is_not_ours_is_refused_and_another_try_is_free(start_host: Any) -> None:
    host = await start_host(greet=False)
    for wanted in ([2], [0, 99], []):
        refused = await host.refusal("initialize", {"initializationOptions": {"sidecar": {"protocolVersions": wanted}}})
        assert (refused.code, refused.kind, refused.data["supported"]) == (4000, "protocolVersionUnsupported", [1])
    assert (await host.refusal("getState")).code == -32002
    await host.request("initialize", {"initializationOptions": {"sidecar": {"protocolVersions": [2, 1]}}})
    assert await serves_on(host)


async def test_a_bad_first_message_does_not_cost_the_next(start_host: Any) -> None:
    host = await start_host(greet=False)
    assert (await host.exchange(b"{nonsense\n"))["error"]["code"] == -32700
    assert (await host.exchange([]))["error"]["code"] == -32600
    wrong = await host.refusal("initialize", {"capabilities": []})
    assert (wrong.code, wrong.data["errors"][0]["path"]) == (-32602, "capabilities")
    await host.request("initialize")
    assert await serves_on(host)


@pytest.mark.parametrize("framing", BOTH)
async def test_after_shutdown_requests_are_refused_under_their_own_id(start_host: Any, framing: Framing) -> None:
    host = await start_host(framing=framing)
    assert await host.request("shutdown") is None
    for method in ("getState", "shutdown", "initialize", "run", "nothing"):
        asked = host.ask(method, {}, request_id=f"late {method}")
        answer = await asked.message()
        assert (answer["id"], answer["error"]["code"]) == (f"late {method}", -32600)
    host.notify("exit")
    assert await host.wait() == 0


# ---- ids and cancelling ------------------------------------------------------------------------------------------


async def test_an_id_that_is_still_unanswered_is_refused_and_the_first_goes_on(start_host: Any, model: Any) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.hangs()
    host.send({"jsonrpc": "2.0", "id": 7, "method": "run", "params": {"sessionId": session.id, "input": "hi"}})
    await model.received()

    twice = await host.exchange(GET_STATE)

    assert (twice["error"]["code"], twice["id"]) == (-32600, 7)
    assert "result" in await host.exchange({**GET_STATE, "id": "7"})
    host.notify("$/cancelRequest", {"id": 7})
    first = (await host.until(lambda: [message for message in host.messages if message.get("id") == 7][1:]))[0]
    assert first["result"]["status"] == "cancelled"


async def test_cancelling_what_is_not_there_is_harmless(either: FakeHost) -> None:
    for params in (None, {}, {"id": None}, {"id": 99}, {"id": "99"}, {"id": 1.5}, {"id": [1]}, [], "x"):
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": "$/cancelRequest"}
        either.send(message if params is None else {**message, "params": params})
    nobody = {"sessionId": "nobody"}
    for params in (None, {}, nobody, {"runId": "nothing"}, {**nobody, "runId": "nothing"}):
        assert await either.request("cancelRun", params) == {"status": "notRunning"}
    count = len(either.messages)
    assert await serves_on(either)
    assert len(either.messages) == count + 1, "a notification was answered"


async def test_a_cancel_reaches_a_run_by_its_exact_request_id_only(start_host: Any, model: Any) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.hangs()
    run = session.start("hi")
    await model.received()

    host.notify("$/cancelRequest", {"id": str(run.asked.id)})
    assert (await session.state())["activeRun"]["runId"] == run.id
    run.asked.cancel()

    result = await run.result()
    assert (result["status"], result["stopReason"]) == ("cancelled", "cancelled")
    run.asked.cancel()
    assert await session.cancel(runId=run.id) == "alreadyFinished"
    assert await session.cancel() == "notRunning"


async def test_a_cancel_in_the_same_read_as_its_run_finds_it(start_host: Any, model: Any) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["late"])
    run = session.start("hi")
    run.asked.cancel()

    assert (await run.result())["status"] == "cancelled"
    assert session.events("run.completed")[-1]["data"]["status"] == "cancelled"
