"""From params as JSON to params as types: what is wrong is said with its path, and never repeated."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import ValidationError

from protocol.agents import AgentOptions, AgentSpec, ProviderEntry
from protocol.base import Json, JsonObject, Params
from protocol.tools import HostTool
from sidecar.errors import ConfigInvalid, InvalidParams, SidecarError
from sidecar.transport.decode import DecodeError, refuse_nul, replace_nul

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FREE_FORM = frozenset(
    {
        "_meta",
        "arguments",
        "clientKwargs",
        "config",
        "functionInvocationKwargs",
        "inputSchema",
        "metadata",
        "properties",
        "responseFormat",
        "state",
        "statePatch",
        "structuredContent",
    }
)
"""Fields that hold JSON as data: it is passed on exactly, or refused."""

_CONFIGURATION = {"agent": AgentSpec, "contextProviders": ProviderEntry, "tools": HostTool}
"""Params that hold configuration: what is refused there is `configInvalid`."""

MAX_FAULTS = 20

P = TypeVar("P", bound=Params)


def as_object(params: Json) -> JsonObject:
    """Params are an object; missing or null is the empty one.

    Raises:
        InvalidParams: they are something else.
    """
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise InvalidParams("params must be an object", [{"path": "", "message": "not an object"}])
    return cast("JsonObject", params)


def clean_nul(params: JsonObject) -> JsonObject:
    """NUL characters in text become U+FFFD; in free-form JSON they are refused.

    Raises:
        InvalidParams: one stands in free-form JSON.
    """
    cleaned: JsonObject = {}
    for key, value in params.items():
        if key in FREE_FORM:
            try:
                refuse_nul(value, (key,))
            except DecodeError as error:
                path = ".".join(map(str, error.path))
                fault = {"path": path, "message": "holds a NUL character"}
                raise InvalidParams(f"{path}: free-form JSON must not hold NUL characters", [fault]) from None
            cleaned[key] = value
        elif isinstance(value, dict):
            cleaned[key] = clean_nul(cast("JsonObject", value))
        elif isinstance(value, list):
            cleaned[key] = [
                clean_nul(cast("JsonObject", item)) if isinstance(item, dict) else replace_nul(item)
                for item in cast("list[Json]", value)
            ]
        else:
            cleaned[key] = replace_nul(value)
    return cleaned


def validate(model: type[P], params: JsonObject) -> P:
    """The params as their type.

    Raises:
        InvalidParams: their shape is wrong; `data.errors` says where.
        ConfigInvalid: an agent, a provider entry or a tool in them is refused.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _refusal(error, params) from None


@dataclass(frozen=True, slots=True)
class _Fault:
    type: str
    path: tuple[str, ...]
    message: str

    def wire(self) -> JsonObject:
        return {"path": ".".join(self.path), "message": self.message}


def _refusal(error: ValidationError, params: JsonObject) -> SidecarError:
    found = [
        _Fault(fault["type"], _path(fault["loc"], fault["type"], params), _message(fault))
        for fault in error.errors(include_url=False, include_input=False)
    ]
    # Where several shapes were tried, the one that came deepest is the one that was meant.
    found.sort(key=lambda fault: -len(fault.path))
    configuration = [fault for fault in found if fault.path and fault.path[0] in _CONFIGURATION]
    if configuration:
        unknown = [fault for fault in configuration if fault.type == "extra_forbidden"]
        return _configuration_refused((unknown or configuration)[0])
    first = found[0].wire()
    return InvalidParams(f"{first['path']}: {first['message']}", [fault.wire() for fault in found[:MAX_FAULTS]])


def _configuration_refused(fault: _Fault) -> ConfigInvalid:
    path, hint = ".".join(fault.path), ""
    if fault.type == "extra_forbidden":
        near = difflib.get_close_matches(fault.path[-1], _known_keys(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigInvalid(f"{path}: {fault.message}{hint}", key=path)


def _known_keys() -> list[str]:
    models = (*_CONFIGURATION.values(), AgentOptions)
    return [str(field.alias) for model in models for field in model.model_fields.values()]


def _message(fault: "ErrorDetails") -> str:
    """What is wrong, in JSON's words and without the input."""
    match fault["type"]:
        case "tuple_type":
            return "Input should be a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "Input should be an object"
        case "union_tag_invalid":
            return f"type should be one of: {fault.get('ctx', {}).get('expected_tags', '')}"
        case _:
            return fault["msg"]


def _path(location: tuple[int | str, ...], kind: str, params: JsonObject) -> tuple[str, ...]:
    """Where a fault is, in the words of the wire: names of types, and tags of unions, that pydantic tried are left out.

    What is a key or an index of the params is kept; so is the last part, where a key is missing.
    """
    kept: list[str] = []
    value: Any = params
    tagged: Any = None
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        if isinstance(value, dict):
            fields = cast("JsonObject", value)
            if not is_last and value is not tagged and fields.get("type") == part:
                tagged = fields
            elif part in fields:
                kept.append(str(part))
                value = fields[str(part)]
            elif is_last and kind == "missing":
                kept.append(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            kept.append(str(part))
            value = cast("list[Any]", value)[part]
    return tuple(kept)
