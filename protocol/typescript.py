"""Turns the contract's JSON Schema document into TypeScript types. It knows only the schema forms that pydantic writes.

Open unions stay open: an object may hold more than its interface names, and an enum of the contract may grow.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .base import JsonObject

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_PRIMITIVES: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_HEADER: Final = """\
// The wire contract of agent-sidecar, protocol version {version}. Made by `agent-sidecar schema --format typescript`.
// Leave out what you do not say: null is a value. Survive a `type`, `kind` or enum value that is not listed here.

export type Json = any;
"""


def typescript(schema: JsonObject) -> str:
    """The TypeScript source for a document of the form that `protocol.schema.json_schema` makes.

    Args:
        schema: The whole document: `$defs`, `x-methods`, `x-hostMethods`, `x-notifications` and `x-events`.
    """
    parts = [_HEADER.format(version=schema["x-protocolVersion"])]
    parts += [_definition(name, definition) for name, definition in schema["$defs"].items()]
    notifications = schema["x-notifications"]
    parts += [
        _table("Methods", "Requests from client to server.", _methods(schema["x-methods"])),
        _table("HostMethods", "Requests from server to client.", _methods(schema["x-hostMethods"])),
        _table("ClientNotifications", "From client to server.", _types(notifications["client"])),
        _table("ServerNotifications", "From server to client.", _types(notifications["server"])),
        _table("Events", "Event type → the shape of its `data`.", _types(schema["x-events"])),
    ]
    return "\n".join(parts)


def _definition(name: str, schema: JsonObject) -> str:
    comment = _comment(schema.get("description"), "")
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)};\n"
    body = "".join(_fields(schema, "  "))
    return f"{comment}export interface {name} {{\n{body}}}\n"


def _table(name: str, comment: str, rows: dict[str, str]) -> str:
    body = "".join(f"  {json.dumps(key)}: {value};\n" for key, value in rows.items())
    return f"{_comment(comment, '')}export interface {name} {{\n{body}}}\n"


def _methods(methods: JsonObject) -> dict[str, str]:
    return {
        name: f"{{ params: {_type(ends['params'])}; result: {_type(ends['result'])} }}"
        for name, ends in methods.items()
    }


def _types(references: JsonObject) -> dict[str, str]:
    return {name: _type(reference) for name, reference in references.items()}


def _fields(schema: JsonObject, indent: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        key = name if _IDENTIFIER.match(name) else json.dumps(name)
        optional = name not in required
        kind = _without_null(field) if optional else _type(field)
        yield f"{_comment(field.get('description'), indent)}{indent}{key}{'?' if optional else ''}: {kind};\n"


def _without_null(schema: JsonObject) -> str:
    """The type of an optional field: null is only another way to leave it out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    return _union(map(_type, kinds)) if kinds else _type(schema)


def _type(schema: JsonObject) -> str:
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return _union(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _union(map(_type, schema[choice]))
    return _by_kind(schema)


def _by_kind(schema: JsonObject) -> str:
    kind: Any = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return _PRIMITIVES.get(kind, "Json")


def _array(schema: JsonObject) -> str:
    if "prefixItems" in schema:
        return "[" + ", ".join(map(_type, schema["prefixItems"])) + "]"
    items = _type(schema["items"]) if "items" in schema else "Json"
    return f"({items})[]" if " | " in items else f"{items}[]"


def _object(schema: JsonObject) -> str:
    if "properties" in schema:
        return "{ " + "".join(field.strip() + " " for field in _fields(schema, "")) + "}"
    values: JsonObject | bool = schema.get("additionalProperties", True)
    return f"{{ [key: string]: {'Json' if isinstance(values, bool) else _type(values)} }}"


def _union(kinds: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(kinds))


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    lines = text.replace("*/", "* /").splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"
