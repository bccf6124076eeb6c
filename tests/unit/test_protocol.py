"""The wire contract: its documents are fresh, its table is whole, and its types take and keep what they should."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from protocol import schema
from protocol.base import MAX_ID_LENGTH, StrictModel, WireModel
from protocol.errors import KINDS, ErrorData, WireError
from protocol.events import EPHEMERAL, EVENTS, RunEvent
from protocol.messages import Block, Message, TextBlock, UnknownBlock, Usage, text_message
from protocol.methods import HOST_METHODS, METHODS, NOTIFICATIONS, SERVER_NOTIFICATIONS
from protocol.runs import RunParams, StopReason

CONTRACT = (
    "initialize", "createSession", "resumeSession", "listSessions", "updateSession", "closeSession", "deleteSession",
    "forkSession", "exportSession", "importSession", "run", "cancelRun", "steerRun", "getState", "getHistory",
    "getEvents", "explainRun", "resolveRequest", "listAgents", "listModels", "listProviders", "listTools",
    "listApprovalRules", "revokeApprovalRule", "listMemories", "searchMemories", "deleteMemories", "getSchema",
    "reloadConfig", "trustFolder", "shutdown",
)  # fmt: skip
"""Every request from client to server that the contract names."""

CODES = {
    "parseError": -32700, "invalidRequest": -32600, "methodNotFound": -32601, "invalidParams": -32602,
    "internalError": -32603, "notInitialized": -32002, "requestCancelled": -32800, "serverCancelled": -32802,
    "protocolVersionUnsupported": 4000, "sessionNotFound": 4001, "sessionExists": 4002, "runNotFound": 4003,
    "sessionBusy": 4004, "sessionClosed": 4005, "idempotencyConflict": 4006, "revisionConflict": 4007,
    "cursorExpired": 4008, "sessionCorrupt": 4009, "agentNotFound": 4010, "modelNotFound": 4011, "toolNotFound": 4012,
    "providerNotFound": 4013, "capabilityRequired": 4014, "configInvalid": 4015, "providerFailed": 4020,
    "toolFailed": 4021, "hostUnavailable": 4022,
    "middlewareFailed": 4023,
    "agentFailed": 4024, "modelAuth": 4030, "modelRateLimited": 4031, "modelQuota": 4032,
    "contextWindowExceeded": 4033, "contentFiltered": 4034, "modelBadRequest": 4035, "modelUnavailable": 4036,
    "modelTimeout": 4037, "modelBadStream": 4038, "overloaded": 4040, "messageTooLarge": 4041, "storageFailed": 4042,
    "sessionLocked": 4043, "storageBusy": 4044, "ownershipLost": 4045,
}  # fmt: skip

EVENT_DATA: dict[str, dict[str, Any]] = {
    "run.queued": {"position": 1},
    "run.started": {"agent": "default", "model": "x:m"},
    "provider.started": {"sourceId": "p", "type": "t", "phase": "beforeRun"},
    "provider.progress": {"sourceId": "p", "phase": "afterRun", "message": "m", "data": {"a_b": [1]}},
    "provider.completed": {
        "sourceId": "p",
        "type": "t",
        "phase": "beforeRun",
        "durationMs": 1.5,
        "added": {"instructions": 1, "messages": 2, "tools": 0, "middleware": 0, "tokens": 9},
        "removed": 1,
    },
    "provider.failed": {
        "sourceId": "p",
        "type": "t",
        "phase": "afterRun",
        "durationMs": 1.5,
        "error": {"kind": "providerFailed", "message": "m"},
    },
    "message.started": {"messageId": "m", "role": "assistant"},
    "message.delta": {"messageId": "m", "contentIndex": 0, "text": "t"},
    "message.completed": {"messageId": "m", "role": "assistant", "content": [{"type": "text", "text": "t"}]},
    "reasoning.delta": {"messageId": "m", "text": "t"},
    "reasoning.completed": {"messageId": "m", "text": "t"},
    "tool.started": {
        "callId": "c",
        "name": "n",
        "title": "T",
        "kind": "k",
        "arguments": {"snake_case": {"camelCase": 1}},
        "status": "running",
    },
    "tool.delta": {"callId": "c", "text": "half way"},
    "tool.completed": {
        "callId": "c",
        "name": "n",
        "status": "completed",
        "content": [{"type": "text", "text": "t"}],
        "structuredContent": {"snake_case": 1},
        "durationMs": 1.0,
    },
    "request.opened": {
        "requestId": "q1",
        "kind": "hostTool",
        "payload": {"snake_case": 1},
        "deadline": "2026-01-01T00:00:00Z",
    },
    "request.resolved": {"requestId": "q1", "outcome": "completed", "by": "client"},
    "state.changed": {"revision": 2, "keys": ["a_b"]},
    "plan.updated": {
        "entries": [{"id": "1", "title": "Look", "description": "around", "status": "inProgress"}],
    },
    "mode.changed": {"mode": "execute", "previous": "plan", "by": "host"},
    "usage.updated": {
        "run": {"inputTokens": 1, "outputTokens": 2},
        "session": {"inputTokens": 3, "outputTokens": 4, "estimated": True},
        "contextUsed": 5,
        "contextSize": 6,
    },
    "warning": {"kind": "k", "message": "m", "willRetry": True, "attempt": 1},
    "run.completed": {
        "status": "failed",
        "stopReason": "error",
        "usage": {"inputTokens": 1, "outputTokens": 2},
        "error": {
            "code": 4036,
            "message": "m",
            "data": {"kind": "modelUnavailable", "retryable": True, "errorId": "e", "httpStatus": 503},
        },
        "durationMs": 7,
    },
}
"""One full example of each event's data, as sent."""


# ---- documents -------------------------------------------------------------------------------------------------------


def test_the_committed_documents_are_what_the_types_say() -> None:
    rendered = schema.render(schema.json_schema())

    stale = "run: python -m protocol.schema"
    assert schema.SCHEMA_FILE.read_text(encoding="utf-8") == rendered, stale
    assert schema.OPENRPC_FILE.read_text(encoding="utf-8") == schema.render(schema.openrpc()), stale
    assert schema.HASH_FILE.read_text(encoding="utf-8").strip() == schema.fingerprint(rendered), stale


def test_the_schema_resolves_and_is_a_json_schema() -> None:
    from jsonschema import Draft202012Validator

    document = schema.json_schema()

    Draft202012Validator.check_schema(document)
    references = set(_references(document))
    assert references
    assert {reference for reference in references if reference.rsplit("/", 1)[1] not in document["$defs"]} == set()
    assert document["x-methods"].keys() == {method.name for method in METHODS}
    assert document["x-events"].keys() == EVENTS.keys()
    assert document["x-errors"].keys() == KINDS.keys()
    assert document["x-notifications"]["server"].keys() == SERVER_NOTIFICATIONS.keys()
    assert document["x-notifications"]["client"].keys() == {item.name for item in NOTIFICATIONS}


def test_openrpc_has_every_method_with_its_params() -> None:
    described = {method["name"]: method for method in schema.openrpc()["methods"]}

    assert {method.name for method in METHODS} <= described.keys()
    for method in METHODS:
        names = {param["name"] for param in described[method.name]["params"]}
        assert names == {field.alias for field in method.params.model_fields.values()}, method.name


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return [found for item in value for found in _references(item)] if isinstance(value, list) else []


# ---- the table -------------------------------------------------------------------------------------------------------


def test_every_method_of_the_contract_is_there_or_named_as_missing() -> None:
    names = [method.name for method in METHODS]

    assert len(set(names)) == len(names)
    assert set(names) == set(CONTRACT)
    assert [method.name for method in HOST_METHODS] == [
        "host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit",
        "host/getEditorContext",
    ]  # fmt: skip


def test_every_kind_of_error_has_its_code() -> None:
    assert {name: kind.code for name, kind in KINDS.items()} == CODES


def test_an_error_keeps_the_fields_of_its_kind() -> None:
    data = {"kind": "sessionBusy", "retryable": True, "errorId": "e", "activeRunId": "r", "queueLength": 2}
    error = WireError.model_validate({"code": 4004, "message": "busy", "data": data})

    assert error.wire()["data"] == data
    assert ErrorData.model_validate({**data, "kind": "ofALaterVersion"}).kind == "ofALaterVersion"


# ---- events ----------------------------------------------------------------------------------------------------------


def test_there_is_an_example_of_every_event() -> None:
    assert EVENT_DATA.keys() == EVENTS.keys()
    assert EPHEMERAL - {"tool.delta"} <= EVENTS.keys()


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_an_event_comes_back_as_it_was_sent(kind: str) -> None:
    data = EVENT_DATA[kind]
    event = {"sessionId": "s", "runId": "r", "seq": 1, "epoch": "e", "time": "t", "type": kind, "data": data}

    assert EVENTS[kind].model_validate(data).wire() == data
    assert RunEvent.model_validate_json(json.dumps(event)).wire() == event


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_an_event_with_a_field_of_a_later_version_is_read(kind: str) -> None:
    EVENTS[kind].model_validate({**EVENT_DATA[kind], "ofALaterVersion": 1})


def test_every_reason_to_stop_is_one_of_the_contract_s() -> None:
    assert set(get_args(StopReason)) == {
        "endTurn", "maxTokens", "maxTurns", "refusal", "contentFilter", "cancelled", "inputRequired", "timeout",
        "interrupted", "error",
    }  # fmt: skip


# ---- messages and runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("hello", str),
        ("", str),
        ([], tuple),
        ([{"role": "user", "content": "hello"}], Message),
        ([{"type": "text", "text": "hello"}], TextBlock),
        ([{"type": "_ofALaterVersion", "x": 1}], UnknownBlock),
    ],
)
def test_input_is_text_or_messages_or_blocks(given: Any, kind: type) -> None:
    read = RunParams.model_validate({"input": given}).input

    assert isinstance(read[0] if isinstance(read, tuple) and read else read, kind)


@pytest.mark.parametrize(
    "given",
    [None, 3, {}, {"role": "user", "content": "x"}, [{"role": "boss", "content": "x"}], [3], [{"text": "no type"}]],
)
def test_what_is_none_of_them_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        RunParams.model_validate({"input": given})
    with pytest.raises(ValidationError):
        RunParams.model_validate({})


def test_a_run_s_ids_and_limits_are_bounded() -> None:
    longest = "x" * MAX_ID_LENGTH
    assert RunParams.model_validate({"input": "", "runId": longest, "sessionId": longest}).run_id == longest
    for wrong in (
        {"runId": longest + "x"},
        {"sessionId": ""},
        {"timeoutMs": 0},
        {"wait": "never"},
        {"whenBusy": "ask"},
    ):
        with pytest.raises(ValidationError):
            RunParams.model_validate({"input": "", **wrong})


def test_a_string_as_content_is_one_text_block() -> None:
    message = Message.model_validate({"role": "user", "content": "hello"})

    assert message.content == (TextBlock(text="hello"),)
    assert message.wire() == {"role": "user", "content": [{"type": "text", "text": "hello"}]}


def test_a_block_of_a_later_version_is_kept_with_all_that_it_holds() -> None:
    block = {"type": "hologram", "snake_case": {"camelCase": [1, None]}, "camelCase": True}
    message = Message.model_validate({"role": "user", "content": [block]})

    assert json.loads(json.dumps(message.wire()))["content"] == [
        {"type": "hologram", "snake_case": {"camelCase": [1, None]}, "camelCase": True}
    ]
    assert message.text == ""


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}},
        {"type": "reasoning", "text": "t"},
        {"type": "functionCall", "callId": "c", "name": "n", "arguments": {"a_b": {"type": "text"}}},
        {"type": "functionResult", "callId": "c", "content": [{"type": "text", "text": "t"}], "isError": True},
        {"type": "approvalRequest", "requestId": "r", "callId": "c", "name": "n", "arguments": {}},
        {"type": "approvalResponse", "requestId": "r", "approved": False, "message": "no"},
        {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 2}},
        {"type": "error", "kind": "k", "message": "m"},
    ],
    ids=lambda block: block["type"],
)
def test_a_block_comes_back_as_it_was_sent_and_under_its_own_type(block: dict[str, Any]) -> None:
    read = TypeAdapter[Any](Block).validate_python(block)

    assert not isinstance(read, UnknownBlock)
    assert read.wire() == block


@given(
    arguments=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_free_json_is_never_renamed_or_retyped(arguments: dict[str, Any]) -> None:
    block = {"type": "functionCall", "callId": "c", "name": "n", "arguments": arguments}
    message = Message.model_validate({"role": "assistant", "content": [block], "metadata": arguments})

    assert message.model_dump(mode="json")["content"][0]["arguments"] == arguments
    assert message.model_dump(mode="json")["metadata"] == arguments


def test_wire_values_are_frozen() -> None:
    message = text_message("user", "hello")

    with pytest.raises(ValidationError, match="frozen"):
        message.role = "assistant"
    assert all(model.model_config.get("frozen") for model in _all_models(WireModel))


def test_configuration_refuses_what_it_does_not_know_and_the_rest_of_the_wire_does_not() -> None:
    assert all(model.model_config.get("extra") == "forbid" for model in _all_models(StrictModel))
    assert Message.model_validate({"role": "user", "content": "", "ofALaterVersion": 1}).role == "user"


def test_usage_adds_up() -> None:
    known = Usage(input_tokens=1, output_tokens=2, cached_input_tokens=3)
    guessed = Usage(input_tokens=10, output_tokens=20, estimated=True)

    assert known + guessed == Usage(input_tokens=11, output_tokens=22, cached_input_tokens=3, estimated=True)
    assert Usage() + known == known


def _all_models(base: type[WireModel]) -> list[type[WireModel]]:
    """The contract's own subclasses."""
    found = [sub for model in base.__subclasses__() for sub in (model, *_all_models(model))]
    return [model for model in found if model.__module__.startswith("protocol.")]
