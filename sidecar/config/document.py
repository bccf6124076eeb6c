"""Writes `docs/configuration.md` from the configuration's types. Run it after a change of them: a test holds it fresh.

python -m sidecar.config.document
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from protocol.agents import (
    AgentOptions,
    ApprovalConfig,
    ApprovalRule,
    CompactionConfig,
    MiddlewareEntry,
    NamedToolChoice,
    ProviderEntry,
)
from protocol.base import JsonObject
from protocol.docstrings import field_docs
from protocol.tools import AgentTool, HostTool, PythonTool, RegisteredTool

from .document_text import INTRODUCTION, LEGEND
from .endpoints import BUILT_IN, EndpointConfig
from .limits import Limits
from .model import (
    PATTERN_MEANINGS,
    AgentConfig,
    Config,
    EmbeddingsConfig,
    LoggingConfig,
    McpServerConfig,
    StoreConfig,
    TelemetryConfig,
)
from .unavailable import UNAVAILABLE

FILE: Final = Path(__file__).parents[2] / "docs" / "configuration.md"

SECTIONS: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("", Config),
    ("store", StoreConfig),
    ("limits", Limits),
    ("endpoints.NAME", EndpointConfig),
    ("embeddings", EmbeddingsConfig),
    ("agents.NAME", AgentConfig),
    ("agents.NAME.options", AgentOptions),
    ("agents.NAME.options.tool_choice", NamedToolChoice),
    ("agents.NAME.tools[] type=registered", RegisteredTool),
    ("agents.NAME.tools[] type=agent", AgentTool),
    ("agents.NAME.tools[] type=python", PythonTool),
    ("agents.NAME.tools[] type=host", HostTool),
    ("agents.NAME.context_providers[]", ProviderEntry),
    ("agents.NAME.middleware[]", MiddlewareEntry),
    ("agents.NAME.approvals", ApprovalConfig),
    ("agents.NAME.approvals.rules[]", ApprovalRule),
    ("agents.NAME.compaction", CompactionConfig),
    ("mcp_servers.NAME", McpServerConfig),
    ("telemetry", TelemetryConfig),
    ("logging", LoggingConfig),
)
"""Every table, in the order of the document, and its type."""

_ABOUT: Final[dict[type[BaseModel], str]] = {
    AgentOptions: "How the agent's model calls are made. A key that is not set is not sent.",
    AgentConfig: "An agent; its name is its table's. `createSession` takes the same keys in camelCase.",
    NamedToolChoice: "Instead of a word: the one tool that the model must call.",
}
"""What a type says of itself where that does not fit here."""

_UNITS: Final = {"_ms": "milliseconds", "_bytes": "bytes", "_tokens": "tokens"}
_PLAIN_TYPES: Final = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_NO_DEFAULT: Final = "not set"


def document() -> str:
    """The whole document."""
    schema = Config.model_json_schema(by_alias=False)
    tables = [_section(place, model, schema) for place, model in SECTIONS]
    return "\n".join([INTRODUCTION, LEGEND, *tables])


def _section(place: str, model: type[BaseModel], schema: JsonObject) -> str:
    node: JsonObject = schema if model is Config else schema["$defs"][model.__name__]
    docs = field_docs(model)
    required: list[str] = node.get("required", [])
    head = f"### `[{place}]`" if place else "### At the top"
    about = _ABOUT.get(model) or inspect.cleandoc(model.__doc__ or "")
    lines = [head, "", about, ""]
    if model is EndpointConfig:
        lines += [f"Always there: {', '.join(f'`{name}`' for name in BUILT_IN)}. A table of that name changes one.", ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in node["properties"].items():
        key = name.removesuffix("_")
        mark = " †" if _is_unavailable(place, key) else ""
        default = "required" if name in required else _default(field)
        lines.append(f"| `{key}`{mark} | {_type(field, _unit(key))} | {default} | {_meaning(model, name, docs)} |")
    return "\n".join([*lines, ""])


def _meaning(model: type[BaseModel], name: str, docs: dict[str, str]) -> str:
    """The field's docstring; of a table of its own, that table's."""
    annotation: Any = model.model_fields[name].annotation
    if name not in docs and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _cell(annotation.__doc__ or "")
    return _cell(docs.get(name) or ("Says that it is one." if name == "type" else ""))


def _default(field: JsonObject) -> str:
    value = field.get("default")
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int):
        return f"`{value:_}`"
    return f"`{value}`" if value else _NO_DEFAULT


def _unit(key: str) -> str:
    return next((f" of {unit}" for suffix, unit in _UNITS.items() if key.endswith(suffix)), "")


def _type(node: JsonObject, unit: str) -> str:
    members = [member for member in node.get("anyOf", [node]) if member.get("type") != "null"]
    return _cell(", or ".join(dict.fromkeys(_one_type(member, unit) for member in members)))


def _one_type(node: JsonObject, unit: str = "") -> str:
    if "$ref" in node:
        return "table"
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return " · ".join(f"`{choice}`" for choice in node["enum"])
    if node.get("type") == "array":
        return f"list of {_items(node['items'])}"
    if node.get("type") == "object":
        inner = next(iter(node.get("patternProperties", {}).values()), node.get("additionalProperties"))
        return "table of tables" if isinstance(inner, dict) and "$ref" in inner else "table"
    plain = PATTERN_MEANINGS.get(node.get("pattern", "")) or _PLAIN_TYPES.get(node.get("type", ""), "any value")
    plain += unit if node.get("type") == "integer" else ""
    return ", ".join([plain, *_bounds(node)])


def _items(node: JsonObject) -> str:
    return "tables" if "$ref" in node or "anyOf" in node else _one_type(node)


def _bounds(node: JsonObject) -> Iterator[str]:
    lowest = node.get("minimum")
    if lowest is None and "exclusiveMinimum" in node:
        yield f"above {node['exclusiveMinimum']}"
    highest = node.get("maximum")
    if lowest is not None:
        yield f"from {lowest:_}" if highest is None else f"{lowest:_} to {highest:_}"
    elif highest is not None:
        yield f"at most {highest:_}"
    if "maxLength" in node:
        yield f"at most {node['maxLength']} characters"


def _is_unavailable(place: str, key: str) -> bool:
    """Whether the key as such is refused; where only some values are, the types say so in other ways."""
    here = tuple("*" if part == "NAME" else part for part in [*place.split("."), key] if part)
    return any(row.path == here for row in UNAVAILABLE)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
