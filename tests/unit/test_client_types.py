"""The client's types are those of the contract, and what the generator makes of the schema's forms is right."""

import importlib.util
import json
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

import pytest

from protocol.version import VERSION
from sidecar_client import types
from sidecar_client.reconnect import OpenSessions

CLIENT = Path(__file__).parents[2] / "clients" / "python"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_types", CLIENT / "generate_types.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCHEMA: dict[str, Any] = json.loads(generator().SCHEMA_FILE.read_text(encoding="utf-8"))


def test_the_types_are_fresh() -> None:
    """If not: python clients/python/generate_types.py."""
    made = generator()
    assert made.TYPES_FILE.read_text(encoding="utf-8") == made.python_types(SCHEMA)


def test_every_type_of_the_schema_is_there_with_its_fields() -> None:
    for name, schema in SCHEMA["$defs"].items():
        made = getattr(types, name)
        assert is_typeddict(made)
        assert set(get_type_hints(made)) == set(schema.get("properties", ())), name
        assert made.__required_keys__ == set(schema.get("required", ())), name


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "int"),
        ({"enum": ["a", "b"]}, 'Literal["a", "b"]'),
        ({"const": True, "type": "boolean"}, "Literal[True]"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "additionalProperties": True}, "JsonObject"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"$ref": "#/$defs/Usage"}]}, "str | Usage"),
        ({}, "Json"),
    ],
)
def test_a_schema_form_becomes_a_type(schema: dict[str, Any], expected: str) -> None:
    made = {**SCHEMA, "$defs": {**SCHEMA["$defs"], "Sample": {"properties": {"it": schema}, "required": ["it"]}}}
    assert f"    it: {expected}\n" in generator().python_types(made)


def test_keywords_leave_out_what_the_client_fills_in() -> None:
    given = {"sessionId", "tools"}
    assert set(get_type_hints(types.ResumeKeywords)) == set(get_type_hints(types.ResumeSessionParams)) - given
    assert "input" not in get_type_hints(types.RunKeywords)


def test_the_version_is_the_sidecar_s() -> None:
    import tomllib

    assert tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"] == VERSION


def test_what_a_resumption_supplies_again_is_the_host_s_own() -> None:
    sessions = OpenSessions()
    entries = [{"type": "host", "sourceId": "h"}, {"type": "structured_memory"}]
    params = {"tools": [{"name": "t"}], "contextProviders": entries, "title": "not again"}
    with sessions.opening(params) as opened:
        opened({"session": {"sessionId": "s", "epoch": "e"}, "lastSeq": 4})
    assert sessions.resumptions() == {
        "s": {
            "sessionId": "s",
            "replayFrom": {"type": "seq", "seq": 4, "epoch": "e"},
            "tools": [{"name": "t"}],
            "contextProviders": entries[:1],
        }
    }


def test_what_is_not_given_again_stays_supplied_and_an_empty_list_takes_it_away() -> None:
    sessions = OpenSessions()
    answer = {"session": {"sessionId": "s", "epoch": "e"}, "lastSeq": 4}
    for params in ({"tools": [{"name": "t"}]}, {"contextProviders": [{"type": "host", "sourceId": "h"}]}, {}):
        with sessions.opening({"sessionId": "s", **params}) as opened:
            opened(answer)
    resumption = sessions.resumptions()["s"]
    assert resumption["tools"] == [{"name": "t"}]
    assert resumption["contextProviders"] == [{"type": "host", "sourceId": "h"}]
    with sessions.opening({"sessionId": "s", "tools": []}) as opened:
        opened(answer)
    assert sessions.resumptions()["s"]["tools"] == []


def test_what_a_host_may_answer_is_what_the_sidecar_may_ask() -> None:
    assert set(get_type_hints(types.Handlers)) == set(SCHEMA["x-hostMethods"])


def test_an_event_of_a_replay_moves_the_cursor_before_its_answer_was_looked_at() -> None:
    sessions = OpenSessions()
    with sessions.opening({"sessionId": "s", "replayFrom": {"type": "start"}}) as opened:
        event = types.RunEvent(sessionId="s", seq=2, epoch="e", time="t", type="run.completed", data={})
        sessions.saw(event)
        sessions.saw({**event, "seq": 7, "ephemeral": True})
        opened({"session": {"sessionId": "s", "epoch": "e"}, "lastSeq": 9})
    assert sessions.resumptions()["s"]["replayFrom"] == {"type": "seq", "seq": 2, "epoch": "e"}


def test_a_session_that_could_not_be_opened_is_not_resumed_later() -> None:
    sessions = OpenSessions()
    with sessions.opening({"sessionId": "s"}):
        pass
    assert sessions.resumptions() == {}
