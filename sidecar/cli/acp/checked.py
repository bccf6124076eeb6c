"""The params of ACP's methods as the package's types. What is wrong with them is said, and never repeated."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from protocol.base import Json, JsonObject
from sidecar.errors import InvalidParams

from .peer import Reply

M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Json], Awaitable[Json | Reply]]
"""Answers the requests of one method."""


def checked(model: type[M], handle: Callable[[M], Awaitable[Json | Reply]]) -> Handler:
    """A handler whose params have been looked at."""

    async def answer(params: Json) -> Json | Reply:
        return await handle(validated(model, params))

    return answer


def validated(model: type[M], params: Json) -> M:
    """Params as their type.

    Raises:
        InvalidParams: Their shape is wrong; `data.errors` says where.
    """
    try:
        return model.model_validate(as_object(params))
    except ValidationError as error:
        faults = [
            {"path": ".".join(map(str, fault["loc"])), "message": fault["type"].replace("_", " ")}
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise InvalidParams(f"{faults[0]['path']}: {faults[0]['message']}", faults) from None


def as_object(params: Json) -> JsonObject:
    """Params are an object; missing or null is the empty one.

    Raises:
        InvalidParams: They are something else.
    """
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise InvalidParams("params must be an object", [{"path": "", "message": "not an object"}])
    return cast("JsonObject", params)


def member(value: Json, *names: str) -> Any:
    """What stands in objects inside of objects; None where something is missing."""
    for name in names:
        value = cast("JsonObject", value).get(name) if isinstance(value, dict) else None
    return value
