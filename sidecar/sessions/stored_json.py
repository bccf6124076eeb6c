"""How records, messages and events become the bytes that are stored. Text that no UTF-8 holds never stops a write."""

from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from protocol.base import JsonObject


def stored_json(value: BaseModel | JsonObject) -> bytes:
    """The JSON of a model, or of an event's data. Lone surrogates in it become U+FFFD, as on the wire."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json(by_alias=True, exclude_none=True).encode()
        return to_json(value)
    except PydanticSerializationError:
        plain = value.model_dump(by_alias=True, exclude_none=True) if isinstance(value, BaseModel) else value
        return to_json(_cleaned(plain))


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [_cleaned(item) for item in cast("list[Any]", value)]
        case BaseModel():
            return _cleaned(value.model_dump(by_alias=True, exclude_none=True))
        case _:
            return value
