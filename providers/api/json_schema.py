"""Checks values against JSON Schemas. Schemas come from outside: nothing they refer to is ever fetched."""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any, Final, cast

from protocol.base import JsonObject

_PLAIN: Final = frozenset(
    {
        "$schema", "additionalProperties", "const", "default", "description", "enum", "examples", "exclusiveMaximum",
        "exclusiveMinimum", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum",
        "properties", "required", "title", "type",
    }
)  # fmt: skip


def schema_problem(schema: JsonObject) -> str | None:
    """Why `schema` is no JSON Schema, in a few words; `None` if it is one."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:200]}"
    return None


def dangling_reference(schema: JsonObject) -> str | None:
    """The first `$ref` that names no entry of the schema's own `$defs` or `definitions`; `None` if all do."""
    for reference in _references(schema):
        _, section, name, *_ = [*reference.split("/"), "", "", ""]
        definitions: object = schema.get(section) if section in {"$defs", "definitions"} else None
        if not reference.startswith("#/") or not isinstance(definitions, dict) or name not in definitions:
            return reference
    return None


def value_problem(schema: JsonObject, value: Any) -> str | None:
    """Why `value` does not follow `schema`, in a few words; `None` if it does. May take long: call it off the loop."""
    return _problem(_validator()(schema), value)


def value_checker(schema: JsonObject) -> Callable[[Any], str | None]:
    """`value_problem` for one schema that is used again and again."""

    @cache
    def validator() -> Any:
        return _validator()(schema)

    return lambda value: _problem(validator(), value)


def is_plain(schema: Any) -> bool:
    """Whether a value is checked in time that grows with its size alone: there are no patterns, references, choices."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    fields = cast("JsonObject", schema)
    inner = [*cast("JsonObject", fields.get("properties", {})).values(), fields.get("items", True)]
    return fields.keys() <= _PLAIN and all(map(is_plain, (*inner, fields.get("additionalProperties", True))))


def _problem(validator: Any, value: Any) -> str | None:
    from referencing.exceptions import Unresolvable

    try:
        error = next(validator.iter_errors(value), None)
    except Unresolvable:
        return "the schema refers to something that is not in it"
    except RecursionError:
        return "the schema refers to itself without an end"
    return None if error is None else f"{error.json_path}: {error.message[:200]}"


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        fields = cast("JsonObject", part)
        if isinstance(fields.get("$ref"), str):
            yield fields["$ref"]
        for item in fields.values():
            yield from _references(item)
    elif isinstance(part, list):
        for item in cast("list[Any]", part):
            yield from _references(item)


@lru_cache(maxsize=1)
def _validator() -> Any:
    """A validator class whose registry is empty, so that a foreign `$ref` fails instead of being fetched."""
    import jsonschema
    import referencing

    return partial(cast("Any", jsonschema).Draft202012Validator, registry=cast("Any", referencing).Registry())
