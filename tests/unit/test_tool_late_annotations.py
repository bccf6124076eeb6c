"""Annotations that are text until they are looked up, as `from __future__ import annotations` makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from providers.api.tool import tool

if TYPE_CHECKING:
    from decimal import Decimal

    from providers.api.invocation import FunctionInvocationContext


class Place(BaseModel):
    city: str


@tool
def visit(
    place: Place, days: Annotated[int, Field(ge=1), "how long"], call: FunctionInvocationContext | None = None
) -> Decimal | None:
    """Visit a place."""


class Guide:
    @tool
    def show(self, place: Place, call: FunctionInvocationContext) -> None: ...


def test_parameters_are_looked_up_in_the_functions_own_module() -> None:
    assert visit.bind({"place": {"city": "Rome"}, "days": 2}) == {"place": Place(city="Rome"), "days": 2}
    assert visit.input_schema["properties"]["days"] == {"type": "integer", "minimum": 1, "description": "how long"}


def test_the_context_is_known_though_only_type_checkers_import_it() -> None:
    assert visit.context_parameter == "call"
    assert set(visit.input_schema["properties"]) == {"place", "days"}
    assert Guide().show.context_parameter == "call"
