"""Structured output: from `responseFormat` to a schema, and from the last text to a value. One parser for all runs."""

import asyncio
from typing import Any, cast

from protocol.base import Json, JsonObject
from providers.api.json_schema import schema_problem, value_problem
from providers.api.json_value import parse_json
from sidecar.errors import InvalidParams


def response_schema(response_format: Json) -> JsonObject | None:
    """The JSON Schema that a run's answer must follow.

    Args:
        response_format: a JSON Schema object, or OpenAI's `{"type": "json_schema", "json_schema": {"schema": …}}`.

    Raises:
        InvalidParams: it is neither.
    """
    if response_format is None:
        return None
    schema: object = response_format
    if isinstance(response_format, dict):
        wrapper = cast("JsonObject", response_format)
        if wrapper.get("type") == "json_schema" and isinstance(wrapper.get("json_schema"), dict):
            schema = wrapper["json_schema"].get("schema")
    if not isinstance(schema, dict):
        raise InvalidParams(
            "responseFormat must be a JSON Schema object, or OpenAI's json_schema wrapper around one",
            [{"path": "responseFormat", "message": "no object"}],
        )
    found = cast("JsonObject", schema)
    problem = schema_problem(found)
    if problem is not None:
        raise InvalidParams(
            f"responseFormat is no JSON Schema: {problem}", [{"path": "responseFormat", "message": problem}]
        )
    return found


async def parse_value(text: str, schema: JsonObject) -> tuple[Any, str | None]:
    """The answer as a value, and why there is none: an answer that breaks the schema is no error of the run."""
    try:
        value = parse_json(text)
    except ValueError as error:
        return None, f"the answer is no JSON: {error}"
    problem = await asyncio.to_thread(value_problem, schema, value)
    return (value, None) if problem is None else (None, f"the answer does not follow the schema: {problem}")
