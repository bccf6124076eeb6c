"""Reads the JSON Schema of a tool's arguments off a function's parameters, if they are that simple. Validates none."""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

from .types import JsonObject

_PRIMITIVES: Final[dict[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_ARRAYS: Final = (list, Sequence)
_OBJECTS: Final = (dict, Mapping)


def parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """A function's parameters, with annotations that are text resolved where that can be."""
    try:
        return inspect.signature(function, eval_str=True).parameters
    except NameError:
        return inspect.signature(function).parameters


def input_schema(parameters: Mapping[str, inspect.Parameter]) -> JsonObject:
    """The schema of an object with a property for each parameter; those without a default are required.

    Understood are `str`, `int`, `float`, `bool`, `None`, `Any`, lists, dicts with text as keys, `Literal`, unions, and
    `Annotated[…, "a description"]`.

    Raises:
        TypeError: A parameter is annotated with something else, or with nothing.
    """
    properties: JsonObject = {}
    required: list[str] = []
    closed = True
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            closed = False
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"arguments come by name, which the parameter {name!r} cannot take")
        else:
            try:
                properties[name] = _schema(parameter.annotation)
            except TypeError as error:
                raise TypeError(f"the parameter {name!r}: {error}; give the tool its input_schema") from error
            if parameter.default is parameter.empty:
                required.append(name)
            elif isinstance(parameter.default, str | int | float | bool):
                properties[name]["default"] = parameter.default
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False} if closed else schema


def _schema(annotation: Any) -> JsonObject:
    if annotation is Any:
        return {}
    if annotation in _PRIMITIVES:
        return {"type": _PRIMITIVES[annotation]}
    origin, parts = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        texts = [part for part in parts[1:] if isinstance(part, str)]
        return {**_schema(parts[0]), **({"description": texts[0]} if texts else {})}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in parts]}
    return _container(origin, parts)


def _container(origin: Any, parts: tuple[Any, ...]) -> JsonObject:
    if origin in _ARRAYS:
        return {"type": "array", **({"items": _schema(parts[0])} if parts else {})}
    if origin in _OBJECTS and (not parts or parts[0] is str):
        return {"type": "object", **({"additionalProperties": _schema(parts[1])} if parts else {})}
    shown = cast("str", getattr(origin, "__name__", str(origin)))
    raise TypeError("it has no annotation" if origin is inspect.Parameter.empty else f"{shown} has no schema")
