"""Writes the contract's documents, `schema.json` and `openrpc.json`, from the types. A test holds them fresh.

Run `python -m protocol.schema` after a change of the types. What is deprecated says so in both documents: a method or
notification by its row's `deprecated`, a field by `Field(json_schema_extra={"deprecated": True})`. Pydantic's own mark
would warn the sidecar of itself.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from .base import JsonObject, WireModel
from .docstrings import field_docs
from .errors import KINDS, WireError
from .events import EVENTS
from .methods import HOST_METHODS, METHODS, NOTIFICATIONS, SERVER_NOTIFICATIONS, Method, Notification
from .version import PROTOCOL_VERSION, VERSION

FOLDER: Final = Path(__file__).parent
SCHEMA_FILE: Final = FOLDER / "schema.json"
OPENRPC_FILE: Final = FOLDER / "openrpc.json"
HASH_FILE: Final = FOLDER / "schema.sha256"


class _Documented(GenerateJsonSchema):
    """Says of each field what its docstring says."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        told = super().model_schema(schema)
        model = schema["cls"]
        if issubclass(model, BaseModel):
            for name, text in field_docs(model).items():
                field = told.get("properties", {}).get(model.model_fields[name].alias or name)
                if field is not None:
                    field.setdefault("description", " ".join(text.split()))
        return told


def _models() -> list[type[WireModel]]:
    found: dict[type[WireModel], None] = {}
    for method in (*METHODS, *HOST_METHODS):
        found[method.params] = None
        if method.result is not type(None):
            found[method.result] = None
        found.update((shape, None) for shape in method.also)
    found.update((notification.params, None) for notification in NOTIFICATIONS)
    found.update((params, None) for params in SERVER_NOTIFICATIONS.values())
    found.update((data, None) for data in EVENTS.values())
    found[WireError] = None
    return list(found)


def _definitions(template: str) -> tuple[dict[type[WireModel], JsonObject], JsonObject]:
    """Each model's reference, and all definitions: what is sent and what is received share one shape here."""
    models = _models()
    references, document = models_json_schema(
        [(model, "validation") for model in models], by_alias=True, ref_template=template, schema_generator=_Documented
    )
    return {model: references[(model, "validation")] for model in models}, document.get("$defs", {})


def json_schema() -> JsonObject:
    """The JSON Schema document: every type under `$defs`, every method and event under `x-methods` and `x-events`."""
    references, definitions = _definitions("#/$defs/{model}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agent-sidecar wire contract",
        "x-protocolVersion": PROTOCOL_VERSION,
        "x-methods": {
            method.name: {"params": references[method.params], "result": _result(method, references), **_mark(method)}
            for method in METHODS
        },
        "x-hostMethods": {
            method.name: {"params": references[method.params], "result": _result(method, references), **_mark(method)}
            for method in HOST_METHODS
        },
        "x-notifications": {
            "client": {sent.name: {**references[sent.params], **_mark(sent)} for sent in NOTIFICATIONS},
            "server": {name: references[params] for name, params in SERVER_NOTIFICATIONS.items()},
        },
        "x-events": {name: references[data] for name, data in EVENTS.items()},
        "x-errors": {name: {"code": kind.code, "retryable": kind.retryable} for name, kind in KINDS.items()},
        "$defs": definitions,
    }


def _result(method: Method[Any, Any], references: dict[type[WireModel], JsonObject]) -> JsonObject:
    if method.result is type(None):
        return {"type": "null"}
    shapes = [references[shape] for shape in (method.result, *method.also)]
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _mark(row: Method[Any, Any] | Notification[Any]) -> JsonObject:
    """What is said of a row that is deprecated."""
    return {} if row.deprecated is None else {"deprecated": True, "description": f"Deprecated: {row.deprecated}"}


def openrpc() -> JsonObject:
    """The OpenRPC document: requests only, params by name."""
    references, definitions = _definitions("#/components/schemas/{model}")
    return {
        "openrpc": "1.3.2",
        "info": {"title": "agent-sidecar", "version": VERSION},
        "methods": [_openrpc_method(method, references, definitions) for method in METHODS],
        "components": {"schemas": definitions},
    }


def _openrpc_method(
    method: Method[Any, Any], references: dict[type[WireModel], JsonObject], definitions: JsonObject
) -> JsonObject:
    params = definitions[references[method.params]["$ref"].rsplit("/", 1)[1]]
    required = params.get("required", ())
    return {
        "name": method.name,
        "description": params.get("description", ""),
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": schema, **_field_mark(schema)}
            for name, schema in params.get("properties", {}).items()
        ],
        "result": {"name": "result", "schema": _result(method, references)},
        **_mark(method),
    }


def _field_mark(schema: JsonObject) -> JsonObject:
    return {"deprecated": True} if schema.get("deprecated") else {}


def render(document: JsonObject) -> str:
    """A document as it is committed."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def fingerprint(schema_text: str) -> str:
    """What `initialize` answers as `schemaHash`."""
    return "sha256:" + hashlib.sha256(schema_text.encode()).hexdigest()


def write() -> None:
    """Write the documents beside this file."""
    schema = render(json_schema())
    SCHEMA_FILE.write_text(schema, encoding="utf-8")
    OPENRPC_FILE.write_text(render(openrpc()), encoding="utf-8")
    HASH_FILE.write_text(fingerprint(schema) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
