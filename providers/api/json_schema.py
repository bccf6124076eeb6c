"""Checks values against JSON Schemas. Schemas come from outside: nothing they refer to is ever fetched."""

from functools import lru_cache, partial
from typing import Any, cast

from protocol.base import JsonObject


def schema_problem(schema: JsonObject) -> str | None:
    """Why `schema` is no JSON Schema, in a few words; `None` if it is one."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:200]}"
    return None


def value_problem(schema: JsonObject, value: Any) -> str | None:
    """Why `value` does not follow `schema`, in a few words; `None` if it does. May take long: call it off the loop."""
    from referencing.exceptions import Unresolvable

    try:
        error = next(_validator()(schema).iter_errors(value), None)
    except Unresolvable:
        return "the schema refers to something that is not in it"
    return None if error is None else f"{error.json_path}: {error.message[:200]}"


@lru_cache(maxsize=1)
def _validator() -> Any:
    """A validator class whose registry is empty, so that a foreign `$ref` fails instead of being fetched."""
    import jsonschema
    import referencing

    return partial(cast("Any", jsonschema).Draft202012Validator, registry=cast("Any", referencing).Registry())
