"""Whether a JSON Schema may be sent as `strict`, which services refuse with 400 for schemas that do not qualify."""

from collections.abc import Iterator
from typing import Any, Final, cast

from protocol.base import JsonObject

_KEYWORDS: Final = """
    $defs $ref $schema additionalProperties anyOf const description enum exclusiveMaximum exclusiveMinimum format items
    maxItems maximum minItems minimum multipleOf pattern properties required title type
"""
_KNOWN: Final = frozenset(_KEYWORDS.split())
"""What strict mode understands."""

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_LARGEST: Final = 5_000
"""Properties in one schema."""
_DEEPEST: Final = 10
_REFERENCES: Final = ("#/$defs/", "#")


def qualifies_as_strict(schema: JsonObject) -> bool:
    """Whether every part of a schema keeps strict mode's rules.

    They are: an object at the root; each object closed (`additionalProperties: false`) with all of its properties
    required; no keyword but the known ones; references inside the document only; a bounded size.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    properties = 0
    for part, depth in _parts(schema, 0):
        if not isinstance(part, dict) or depth > _DEEPEST:
            return False
        fields = cast(JsonObject, part)
        properties += len(fields.get("properties") or ())
        if properties > _LARGEST or not _is_plain(fields):
            return False
    return True


def _is_plain(part: JsonObject) -> bool:
    if not part.keys() <= _KNOWN or not str(part.get("$ref", "#")).startswith(_REFERENCES):
        return False
    types: Any = part.get("type", ())
    named: list[Any] = [types] if isinstance(types, str) else list(types)
    if not all(name in _TYPES for name in named):
        return False
    if "object" in named or "properties" in part:
        properties = cast(JsonObject, part.get("properties") or {})
        return part.get("additionalProperties") is False and set(part.get("required") or ()) == properties.keys()
    return bool(part.keys() & {"type", "enum", "const", "$ref", "anyOf"})


def _parts(schema: Any, depth: int) -> Iterator[tuple[Any, int]]:
    """Every schema in a schema, itself first, with how deep it stands."""
    yield schema, depth
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    fields = cast(JsonObject, schema)
    for name in ("properties", "$defs"):
        for part in cast(JsonObject, fields.get(name) or {}).values():
            yield from _parts(part, depth + 1)
    for part in cast(list[Any], fields.get("anyOf") or []):
        yield from _parts(part, depth + 1)
    if "items" in fields:
        yield from _parts(fields["items"], depth + 1)
