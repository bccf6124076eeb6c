"""The base of every wire type: frozen, camelCase on the wire, snake_case in Python. It validates and runs nothing."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.alias_generators import to_camel

Json = Any
"""Any JSON value, passed through untouched: never renamed, never re-typed."""

JsonObject = dict[str, Any]
"""A JSON object that is data: its keys are never renamed."""


Whole = Annotated[int, Strict()]
"""A whole number, nothing that could be taken for one."""

Number = Annotated[float, Strict()]
"""A number, nothing that could be taken for one."""

Flag = Annotated[bool, Strict()]
"""True or false, nothing that could be taken for it."""

MAX_ID_LENGTH = 256
"""Longest `sessionId`, `runId` and `sourceId`, in characters."""


class WireModel(BaseModel):
    """A value on the wire. Unknown fields are ignored, so that the contract can grow."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        serialize_by_alias=True,
        defer_build=True,
    )

    def wire(self) -> JsonObject:
        """The JSON object that goes on the wire: camelCase, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Params(WireModel):
    """Params of a request or notification. `_meta` is the caller's own and is passed over."""


class Empty(Params):
    """No fields."""


class StrictModel(WireModel):
    """Configuration on the wire, where an unknown key is refused: a misspelt scope key must not pass."""

    model_config = ConfigDict(extra="forbid")
