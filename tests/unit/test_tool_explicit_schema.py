"""Tools whose arguments are given as a pydantic model or a JSON Schema, and must fit the function's parameters."""

from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import ArgumentsError, tool


class Point(BaseModel):
    x: int


class Move(BaseModel):
    to: Point
    speed: int = Field(1, ge=1, alias="howFast")


MOVE: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string", "minLength": 1}, "speed": {"type": "integer"}},
    "required": ["to"],
    "additionalProperties": False,
}


def test_a_model_gives_the_schema_and_the_values() -> None:
    @tool(schema=Move)
    def move(to: Point, speed: int) -> None: ...

    assert set(move.input_schema["properties"]) == {"to", "howFast"}
    assert move.bind({"to": {"x": "3"}}) == {"to": Point(x=3), "speed": 1}
    assert move.bind({"to": {"x": 3}, "howFast": 2})["speed"] == 2
    with pytest.raises(ArgumentsError, match="howFast"):
        move.bind({"to": {"x": 3}, "howFast": 0})
    assert not move.plan.is_slow


def test_a_model_that_says_nothing_of_unknown_names_refuses_them() -> None:
    @tool(schema=Move)
    def move(to: Point, speed: int) -> None: ...

    assert move.input_schema["additionalProperties"] is False
    with pytest.raises(ArgumentsError, match="other"):
        move.bind({"to": {"x": 3}, "other": 1})


def test_a_model_that_allows_unknown_names_hands_them_to_kwargs() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

        to: str

    @tool(schema=Open)
    def move(to: str, **rest: Any) -> None: ...

    assert move.bind({"to": "x", "more": 1}) == {"to": "x", "more": 1}
    assert not move.takes_kwargs


def test_a_model_that_ignores_unknown_names_drops_them() -> None:
    class Lax(BaseModel):
        model_config = ConfigDict(extra="ignore")

        to: str

    @tool(schema=Lax)
    def move(to: str) -> None: ...

    assert move.bind({"to": "x", "more": 1}) == {"to": "x"}


@pytest.mark.parametrize("no_model", [RootModel[list[int]], int])
def test_a_class_that_is_no_model_with_fields_is_refused(no_model: Any) -> None:
    with pytest.raises(ValueError, match="no pydantic model with fields"):
        tool(lambda: None, name="a", schema=no_model)


def test_a_json_schema_is_told_and_checked_as_it_is() -> None:
    @tool(schema=MOVE)
    def move(to: str, speed: int = 1) -> None: ...

    assert move.input_schema == MOVE
    assert move.plan.is_slow
    assert move.bind({"to": "x"}) == {"to": "x"}
    for arguments, problem in (
        ({"to": ""}, r"\$.to"),
        ({}, "required"),
        ({"to": "x", "speed": "fast"}, r"\$.speed"),
        ({"to": "x", "more": 1}, "more"),
    ):
        with pytest.raises(ArgumentsError, match=problem):
            move.bind(arguments)


def test_a_schema_that_its_author_changes_later_stays_as_it_was() -> None:
    schema: dict[str, Any] = {"properties": {"to": {"type": "string"}}}

    @tool(schema=schema)
    def move(to: str = "") -> None: ...

    schema["properties"]["to"]["type"] = "integer"
    assert move.bind({"to": "x"}) == {"to": "x"}
    assert move.input_schema == {"type": "object", "properties": {"to": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "object", "properties": {"to": {"type": "text"}}}, "no JSON Schema"),
        ({"type": "array"}, "type object"),
        ({"properties": {"to": {"$ref": "#/$defs/missing"}}}, "missing"),
        ({"properties": {"to": {"$ref": "https://example.org/schema"}}}, "example.org"),
        ({"properties": {"to": {"const": object()}}}, "no JSON"),
    ],
)
def test_what_is_no_schema_of_arguments_is_refused(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tool(lambda to: None, name="a", schema=schema)


def test_a_schema_that_is_neither_class_nor_object_is_refused() -> None:
    with pytest.raises(TypeError, match="JSON Schema object"):
        tool(lambda: None, name="a", schema=["no"])


def test_a_property_that_no_parameter_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter for 'speed'"):
        tool(lambda to: None, name="a", schema=MOVE)


def test_a_parameter_that_the_schema_leaves_out_is_refused_unless_it_has_a_default() -> None:
    with pytest.raises(ValueError, match="no 'where'"):
        tool(lambda to, speed, where: None, name="a", schema=MOVE)
    made = tool(lambda to, speed, where="here": None, name="a", schema=MOVE)
    with pytest.raises(ArgumentsError, match="missing: 'speed'"):
        made.bind({"to": "x"})


def test_properties_without_a_parameter_go_to_kwargs_which_are_then_not_the_runs() -> None:
    @tool(schema=MOVE)
    def move(to: str, **rest: Any) -> None: ...

    assert move.bind({"to": "x", "speed": 3}) == {"to": "x", "speed": 3}
    assert not move.takes_kwargs


def test_kwargs_are_the_runs_where_the_schema_has_nothing_for_them() -> None:
    with pytest.warns(DeprecationWarning, match="'move'"):
        move = tool(lambda to, speed=1, **rest: None, name="move", schema=MOVE)
    assert move.takes_kwargs


def test_an_open_schema_never_lets_a_model_fill_what_is_not_its_to_fill() -> None:
    def act(user: str, ctx: FunctionInvocationContext, **rest: Any) -> None: ...

    made = tool(partial(act, user="u1"), schema={"type": "object"})
    assert made.bind({"free": 1}) == {"free": 1}
    for name in ("user", "ctx"):
        with pytest.raises(ArgumentsError, match=name):
            made.bind({name: "mine"})


def test_an_open_schema_of_a_function_without_kwargs_takes_no_other_names() -> None:
    made = tool(lambda to: None, name="a", schema={"properties": {"to": {}}})
    with pytest.raises(ArgumentsError, match="no argument 'more'"):
        made.bind({"to": 1, "more": 2})


def test_a_bare_ctx_is_the_context_where_a_schema_was_given() -> None:
    made = tool(lambda to, speed, ctx: None, name="a", schema=MOVE)
    assert made.context_parameter == "ctx"
    assert made.bind({"to": "x", "speed": 1}) == {"to": "x", "speed": 1}


def test_a_bare_ctx_beside_an_annotated_context_is_an_argument() -> None:
    def act(ctx, call: FunctionInvocationContext) -> None: ...

    made = tool(act, schema={"properties": {"ctx": {}}})
    assert made.context_parameter == "call"


def test_an_annotated_ctx_is_an_argument_also_where_a_schema_was_given() -> None:
    def act(ctx: str) -> None: ...

    assert tool(act, schema={"properties": {"ctx": {}}}).context_parameter is None


def test_a_schema_cannot_name_the_context() -> None:
    with pytest.raises(ValueError, match="no parameter for 'ctx'"):
        tool(lambda ctx, **rest: None, name="a", schema={"properties": {"ctx": {}}})
