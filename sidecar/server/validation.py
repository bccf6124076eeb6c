"""From params as JSON to params as types: what is wrong is said with its path, and never repeated."""

import difflib
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from protocol.agents import AgentOptions, AgentSpec, ProviderEntry
from protocol.base import Json, JsonObject, Params
from protocol.tools import HostTool
from sidecar.errors import ConfigInvalid, InvalidParams, SidecarError
from sidecar.transport.decode import DecodeError, refuse_nul, replace_nul

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
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> SidecarError:
    faults = [
        {"path": _path(fault["loc"]), "message": fault["msg"]}
        for fault in error.errors(include_url=False, include_input=False, include_context=False)[:MAX_FAULTS]
    ]
    first = error.errors(include_url=False, include_input=False, include_context=False)
    for fault in first:
        place = str(fault["loc"][0]) if fault["loc"] else ""
        if place in _CONFIGURATION and fault["loc"][-1] != "str":
            return _configuration_refused(fault, _path(fault["loc"]))
    return InvalidParams(f"{faults[0]['path']}: {faults[0]['message']}", faults)


def _configuration_refused(fault: Any, path: str) -> ConfigInvalid:
    hint = ""
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(fault["loc"][-1]), _known_keys(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigInvalid(f"{path}: {fault['msg']}{hint}", key=path)


def _known_keys() -> list[str]:
    models = (*_CONFIGURATION.values(), AgentOptions)
    return [str(field.alias) for model in models for field in model.model_fields.values()]


def _path(location: tuple[int | str, ...]) -> str:
    """Where a fault is, in the words of the wire: names of types that pydantic tried are left out."""
    return ".".join(str(part) for part in location if not _is_type_name(str(part)))


def _is_type_name(part: str) -> bool:
    return part[:1].isupper() or "[" in part or part in {"str", "int", "bool", "constrained-str", "constrained-int"}
