"""Which schemas are sent as strict, and how tools are put as a schema for a model that knows none."""

from typing import Any

import jsonschema
import pytest

from providers.api.ports import ToolSpec
from sidecar.models.embedded_tools import as_call, as_schema
from sidecar.models.openai_request import response_format
from sidecar.models.structured_schema import qualifies_as_strict

STRING = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    """An object that keeps strict mode's rules."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        closed(name=STRING),
        closed(name={"type": ["string", "null"], "description": "d"}, tags={"type": "array", "items": STRING}),
        closed(inner=closed(a={"enum": [1, 2]}), either={"anyOf": [STRING, {"type": "null"}]}),
        closed(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": closed(b=STRING)}},
    ],
)
def test_closed_schemas_are_strict(schema: dict[str, Any]) -> None:
    assert qualifies_as_strict(schema)
    assert response_format(schema)["json_schema"]["strict"] is True


@pytest.mark.parametrize(
    "schema",
    [
        {},
        STRING,
        {"type": "object", "properties": {"name": STRING}},
        closed(name=STRING) | {"required": []},
        closed(name=STRING) | {"anyOf": [STRING]},
        closed(inner={"type": "object", "properties": {"a": STRING}}),
        closed(a={}),
        closed(a={"type": "string", "minLength": 3}),
        closed(a={"allOf": [STRING]}),
        closed(a={"$ref": "https://example.org/a.json"}),
        closed(a=True),
        closed(a={"type": "array", "items": {"type": "object"}}),
        closed(a={"type": "date"}),
    ],
)
def test_open_schemas_are_sent_without_it(schema: dict[str, Any]) -> None:
    assert not qualifies_as_strict(schema)
    assert "strict" not in response_format(schema)["json_schema"]


def test_a_schema_that_never_ends_is_not_strict() -> None:
    schema = closed(a=STRING)
    for _ in range(50):
        schema = closed(inner=schema)
    assert not qualifies_as_strict(schema)


def test_an_answer_under_the_tools_schema_is_a_call() -> None:
    tools = [ToolSpec("weather", "", {"type": "object", "properties": {"city": STRING}}), ToolSpec("clock", "", {})]
    schema = as_schema(tools)
    jsonschema.validate({"tool": "weather", "arguments": {"city": "Ghent"}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tool": "other", "arguments": {}}, schema)
    call = as_call('{"tool": "weather", "arguments": {"city": "Ghent"}}')
    assert call is not None
    assert (call.name, call.arguments) == ("weather", {"city": "Ghent"})


@pytest.mark.parametrize("text", ['{"tool": "weather", "argu', '{"tool": 1, "arguments": {}}', '{"tool": "a"}', ""])
def test_an_answer_that_was_cut_is_no_call(text: str) -> None:
    assert as_call(text) is None
