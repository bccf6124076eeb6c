#!/usr/bin/env python3
"""Writes `sidecar_client/types.py` from the contract's `protocol/schema.json`. A test holds it fresh. Imports nothing.

Run `python clients/python/generate_types.py` after a change of the schema.
"""

import json
import keyword
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

HERE: Final = Path(__file__).resolve().parent
SCHEMA_FILE: Final = HERE.parents[1] / "protocol" / "schema.json"
TYPES_FILE: Final = HERE / "sidecar_client" / "types.py"
WIDTH: Final = 120

Schema = dict[str, Any]

ALIASES: Final = {"Block": ("MessageCompleted", "content"), "ReplayFrom": ("ResumeSessionParams", "replayFrom")}
"""Name → the field whose union it names; of an array, the items."""

KEYWORDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "RunKeywords": ("RunParams", ("sessionId", "agent", "input", "wait")),
    "OneOffKeywords": ("RunParams", ("sessionId", "input", "wait")),
    "CreateKeywords": ("CreateSessionParams", ("tools",)),
    "ResumeKeywords": ("ResumeSessionParams", ("sessionId", "tools")),
    "ResolveKeywords": ("ResolveRequestParams", ("sessionId", "requestId", "result")),
    "UpdateKeywords": ("UpdateSessionParams", ("sessionId",)),
    "ForkKeywords": ("ForkSessionParams", ("sessionId",)),
    "StateKeywords": ("GetStateParams", ("sessionId",)),
    "HistoryKeywords": ("GetHistoryParams", ("sessionId",)),
    "EventsKeywords": ("GetEventsParams", ("sessionId",)),
}
"""What a method of the client takes by keyword: params without those that the client fills in itself."""

PRIMITIVES: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

HEADER: Final = '''\
"""The wire contract of agent-sidecar, protocol version {version}, as `TypedDict`s. Nothing here runs.

Made by `generate_types.py` from the contract's `schema.json`; do not edit. An object may hold more keys than are named
here, and a `type`, `kind` or enum value may be one that is not listed: a newer sidecar adds some.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, as it came or as it will be sent."""
'''


def python_types(schema: Schema) -> str:
    """The source of `types.py` for a document of the form of `schema.json`."""
    return _Writer(schema).source()


class _Writer:
    """One document on its way into source text.

    Types are written in an order in which each stands after those that it names; where they name each other, in quotes.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._types: dict[str, Schema] = schema["$defs"]
        self._aliases = {name: self._union_of(*place) for name, place in ALIASES.items()}
        self._begun: set[str] = set()
        self._written: set[str] = set()
        self._parts: list[str] = []

    def source(self) -> str:
        for name in (*self._aliases, *self._types):
            self._write(name)
        for name, (base, without) in KEYWORDS.items():
            shape: Schema = self._types[base]
            fields = {key: field for key, field in shape["properties"].items() if key not in without}
            text = f"What of `{base}` is given by keyword."
            self._parts.append(self._class(name, {**shape, "properties": fields, "description": text}))
        run_input = self._annotation(self._types["RunParams"]["properties"]["input"])
        self._parts.append(f'RunInput: TypeAlias = {run_input}\n"""Text, messages, or content blocks."""\n')
        self._parts.append(self._handlers())
        return HEADER.format(version=self._schema["x-protocolVersion"]) + "\n\n" + "\n\n".join(self._parts)

    def _handlers(self) -> str:
        """What a host may answer, by method."""
        fields = "".join(
            f'        "{method}": Callable[[{_type(shapes["params"])}], Awaitable[{_type(shapes["result"])}]],\n'
            for method, shapes in self._schema["x-hostMethods"].items()
        )
        text = "What answers the requests that the sidecar sends, by method."
        return f'Handlers = TypedDict(\n    "Handlers",\n    {{\n{fields}    }},\n    total=False,\n)\n"""{text}"""\n'

    def _union_of(self, type_name: str, field: str) -> Schema:
        schema: Schema = self._types[type_name]["properties"][field]
        return {"oneOf": schema.get("items", schema)["oneOf"]}

    def _write(self, name: str) -> None:
        if name in self._begun:
            return
        self._begun.add(name)
        shape = self._aliases.get(name) or self._types[name]
        for needed in _references(self._folded(shape, but=name)):
            self._write(needed)
        self._written.add(name)
        self._parts.append(self._alias(name, shape) if name in self._aliases else self._class(name, shape))

    def _folded(self, schema: Any, but: str = "") -> Any:
        """The schema with a reference in place of each union that has a name."""
        if isinstance(schema, list):
            return [self._folded(part, but) for part in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        fields = cast("Schema", schema)
        for name, union in self._aliases.items():
            if name != but and fields.get("oneOf") == union["oneOf"]:
                return {"$ref": name}
        return {key: self._folded(value, but) for key, value in fields.items()}

    def _alias(self, name: str, schema: Schema) -> str:
        kinds = [self._annotation(kind) for kind in schema["oneOf"]]
        line = f"{name}: TypeAlias = {' | '.join(kinds)}\n"
        return line if len(line) <= WIDTH else f"{name}: TypeAlias = (\n    " + "\n    | ".join(kinds) + "\n)\n"

    def _class(self, name: str, schema: Schema) -> str:
        fields = list(self._fields(schema))
        if any(keyword.iskeyword(key) for key, _ in fields):  # such a key has no place in a class's body
            body = "".join(f'        "{key}": {annotation},\n' for key, annotation in fields)
            return f'{name} = TypedDict(\n    "{name}",\n    {{\n{body}    }},\n)\n{_docstring(schema, "")}'
        body = "".join(_line(key, annotation) for key, annotation in fields)
        gap = "\n" if body else ""
        return f"class {name}(TypedDict):\n{_docstring(schema, '    ')}{gap}{body}"

    def _fields(self, schema: Schema) -> Iterator[tuple[str, str]]:
        required = set(schema.get("required", ()))
        for key, field in schema["properties"].items():
            if key in required:
                yield key, self._annotation(field)
            else:
                yield key, f"NotRequired[{self._annotation(_without_null(field))}]"

    def _annotation(self, schema: Schema) -> str:
        folded = self._folded(schema)
        text = _type(folded)
        return text if set(_references(folded)) <= self._written else f'"{text}"'


def _line(key: str, annotation: str) -> str:
    line = f"    {key}: {annotation}\n"
    if len(line) <= WIDTH + 1:
        return line
    outer, inner = annotation.split("[", 1)
    return f"    {key}: {outer}[\n        {inner[:-1]}\n    ]\n"


def _docstring(schema: Schema, indent: str) -> str:
    text: str = schema.get("description", "")
    first, *rest = textwrap.wrap(text, WIDTH - len(indent) - 6) or ["Nothing is known of it."]
    if not rest:
        return f'{indent}"""{first}"""\n'
    return f'{indent}"""' + "\n".join([first, *(indent + line for line in rest), f'{indent}"""']) + "\n"


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in cast("list[Any]", schema):
            yield from _references(part)
    elif isinstance(schema, dict):
        fields = cast("Schema", schema)
        if "$ref" in fields:
            yield _name(fields)
        for key, value in fields.items():
            if key != "discriminator":
                yield from _references(value)


def _name(schema: Schema) -> str:
    return schema["$ref"].rsplit("/", 1)[-1]


def _without_null(schema: Schema) -> Schema:
    """An optional field's schema: null is only another way to leave it out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    return {"anyOf": kinds} if kinds else schema


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(schema)
    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(_literal, schema['enum']))}]"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _union(_type(kind) for kind in schema[choice])
    return _by_kind(schema)


def _by_kind(schema: Schema) -> str:
    kind = schema.get("type")
    if kind == "array":
        return f"list[{_type(schema['items']) if 'items' in schema else 'Json'}]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return "JsonObject" if isinstance(values, bool) else f"dict[str, {_type(values)}]"
    return PRIMITIVES.get(str(kind), "Json")


def _union(kinds: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(kinds))


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    TYPES_FILE.write_text(python_types(json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))), encoding="utf-8")
