"""Arguments that a signature asks for: the schema a model reads, and the values that the function gets."""

import datetime
import enum
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from providers.api.invocation import FunctionInvocationContext
from providers.api.json_schema import schema_problem, value_problem
from providers.api.tool import ArgumentsError, FunctionTool, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    """Somewhere."""

    city: str
    near: "list[Place]" = []


@dataclass
class Size:
    width: int
    height: int = 1


def properties(made: FunctionTool) -> dict[str, Any]:
    return made.input_schema["properties"]


def test_annotations_become_descriptions_constraints_and_choices() -> None:
    @tool
    def find(
        query: Annotated[str, "what to look for"],
        limit: Annotated[int, Field(ge=1, le=9, description="how many")] = 3,
        order: Literal["old", "new"] = "new",
        color: Color = Color.RED,
    ) -> None: ...

    assert find.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many", "default": 3},
            "order": {"type": "string", "enum": ["old", "new"], "default": "new"},
            "color": {"$ref": "#/$defs/Color", "default": "red"},
        },
        "required": ["query"],
        "additionalProperties": False,
        "$defs": {"Color": {"enum": ["red", "blue"], "type": "string"}},
    }
    assert find.bind({"query": "x", "color": "blue"}) == {"query": "x", "color": Color.BLUE}


def test_models_and_dataclasses_arrive_as_such_also_inside_one_another() -> None:
    @tool
    def go(place: Place, sizes: list[Size]) -> None: ...

    values = go.bind({"place": {"city": "Rome", "near": [{"city": "Ostia"}]}, "sizes": [{"width": 2}]})
    assert values == {"place": Place(city="Rome", near=[Place(city="Ostia")]), "sizes": [Size(2)]}
    assert set(go.input_schema["$defs"]) == {"Place", "Size"}


def test_json_values_become_what_the_annotation_says() -> None:
    @tool
    def book(day: datetime.date, tags: set[str], count: int, ratio: float) -> None: ...

    assert book.bind({"day": "2026-01-02", "tags": ["a", "a"], "count": "3", "ratio": 1}) == {
        "day": datetime.date(2026, 1, 2),
        "tags": {"a"},
        "count": 3,
        "ratio": 1.0,
    }


def test_what_is_not_annotated_is_a_string() -> None:
    @tool
    def say(text, tone="calm") -> None: ...

    assert properties(say) == {"text": {"type": "string"}, "tone": {"type": "string", "default": "calm"}}
    with pytest.raises(ArgumentsError, match="text: Input should be a valid string"):
        say.bind({"text": 3})


def test_defaults_are_left_to_the_function_and_null_is_taken_where_it_is_the_default() -> None:
    @tool
    def act(a: int = 1, b: int | None = None, c=None) -> None: ...

    assert act.bind({}) == {}
    assert act.bind({"b": None, "c": None}) == {"b": None, "c": None}
    assert "required" not in act.input_schema
    assert properties(act)["c"]["default"] is None
    with pytest.raises(ArgumentsError, match="a:"):
        act.bind({"a": None})


def test_a_default_that_json_cannot_say_is_not_told() -> None:
    nothing = object()

    @tool
    def act(a: Any = nothing, b: float = float("inf")) -> None: ...

    assert properties(act) == {"a": {}, "b": {"type": "number"}}
    assert act.bind({}) == {}


def test_a_field_may_stand_where_the_default_does() -> None:
    @tool
    def act(a: int = Field(5, ge=1), b: str = Field(description="needed"), c: int = Field(1, alias="see")) -> None: ...

    assert act.input_schema["required"] == ["b"]
    assert properties(act)["a"] == {"type": "integer", "minimum": 1, "default": 5}
    assert act.bind({"b": "x", "see": 2}) == {"a": 5, "b": "x", "c": 2}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"count": "many"}, "count: Input should be a valid integer"),
        ({}, "count: Field required"),
        ({"count": 1, "other": 2}, "other: Extra inputs are not permitted"),
        ({"count": 1.5}, "count: "),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], problem: str) -> None:
    @tool
    def act(count: int) -> None: ...

    with pytest.raises(ArgumentsError, match=problem):
        act.bind(arguments)


def test_of_many_problems_a_few_are_told_and_no_value_is_repeated() -> None:
    @tool
    def act(numbers: list[int]) -> None: ...

    with pytest.raises(ArgumentsError) as caught:
        act.bind({"numbers": ["secret"] * 50})
    assert "and 45 more" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_validator_that_breaks_is_a_matter_of_the_arguments() -> None:
    def broken(value: str) -> str:
        raise KeyError(value)

    @tool
    def act(text: Annotated[str, AfterValidator(broken)]) -> None: ...

    with pytest.raises(ArgumentsError, match="KeyError"):
        act.bind({"text": "x"})


def test_parameters_may_have_names_that_pydantic_keeps_for_itself() -> None:
    @tool
    def act(model_config: str, copy: str, _private: int, schema: bool) -> None: ...

    arguments = {"model_config": "a", "copy": "b", "_private": 1, "schema": True}
    assert act.bind(arguments) == arguments
    assert set(properties(act)) == set(arguments)


def test_no_parameters_make_an_empty_object() -> None:
    @tool
    def act() -> None: ...

    assert act.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    with pytest.raises(ArgumentsError):
        act.bind({"x": 1})


def test_star_parameters_are_not_the_models_and_kwargs_are_warned_of_once() -> None:
    def act(a: str, *args: int, **kwargs: Any) -> None: ...

    with pytest.warns(DeprecationWarning, match="FunctionInvocationContext") as warned:
        made = tool(act)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert made.takes_kwargs
    assert set(properties(made)) == {"a"}
    with pytest.raises(ArgumentsError):
        made.bind({"a": "x", "user_id": "not mine"})


def test_what_a_partial_has_filled_is_hidden_from_the_model() -> None:
    def act(user: str, text: str) -> None: ...

    made = tool(partial(act, user="u1"))
    assert set(properties(made)) == {"text"}
    with pytest.raises(ArgumentsError):
        made.bind({"user": "u2", "text": "x"})


def test_a_parameter_by_position_only_is_refused() -> None:
    def act(a: str, /) -> None: ...

    with pytest.raises(ValueError, match="'a' by position only"):
        tool(act)


def test_a_type_without_a_json_schema_is_refused_by_name() -> None:
    class Connection: ...

    def act(connection: Connection) -> None: ...

    with pytest.raises(ValueError, match=r"'act' .*Connection"):
        tool(act)


def test_an_annotation_that_names_nothing_is_refused_by_name() -> None:
    def act(a: str) -> None: ...

    act.__annotations__["a"] = "Missing"

    with pytest.raises(ValueError, match="'act' cannot be looked up: name 'Missing'"):
        tool(act)


def test_the_context_is_hidden_whatever_its_name_and_also_in_a_union() -> None:
    @tool
    def plain(a: str, call: FunctionInvocationContext) -> None: ...

    @tool
    def perhaps(a: str, call: FunctionInvocationContext | None = None) -> None: ...

    @tool
    def noted(a: str, call: Annotated["FunctionInvocationContext | None", "x"] = None) -> None: ...

    for made in (plain, perhaps, noted):
        assert made.context_parameter == "call"
        assert set(properties(made)) == {"a"}
        with pytest.raises(ArgumentsError):
            made.bind({"a": "x", "call": {}})


def test_two_contexts_are_refused() -> None:
    def act(a: FunctionInvocationContext, b: FunctionInvocationContext) -> None: ...

    with pytest.raises(ValueError, match="twice: 'a', 'b'"):
        tool(act)


def test_a_bare_ctx_without_a_schema_is_a_string_like_any_other() -> None:
    @tool
    def act(ctx) -> None: ...

    assert act.context_parameter is None
    assert act.bind({"ctx": "x"}) == {"ctx": "x"}


@tool
def everything(
    text: str,
    number: Annotated[float, Field(allow_inf_nan=False)],
    flags: list[bool],
    nested: dict[str, list[int]],
    choice: Literal["a", 1, None],
    perhaps: Place | None = None,
) -> None: ...


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fitting = st.fixed_dictionaries(
    {
        "text": st.text(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "flags": st.lists(st.booleans(), max_size=3),
        "nested": st.dictionaries(st.text(max_size=3), st.lists(st.integers(-(2**60), 2**60), max_size=2), max_size=3),
        "choice": st.sampled_from(["a", 1, None]),
    },
    optional={"perhaps": st.none() | st.fixed_dictionaries({"city": st.text()})},
)


@given(arguments=fitting)
def test_what_follows_the_schema_is_bound(arguments: dict[str, Any]) -> None:
    assert value_problem(everything.input_schema, arguments) is None
    values = everything.bind(arguments)
    assert {name: values[name] for name in arguments if name != "perhaps"} == {
        name: value for name, value in arguments.items() if name != "perhaps"
    }


names = st.sampled_from(["text", "number", "flags", "nested", "choice"]) | st.text()


@given(arguments=st.dictionaries(names, json_values, max_size=6))
def test_any_object_is_bound_or_refused_in_words(arguments: dict[str, Any]) -> None:
    follows = value_problem(everything.input_schema, arguments) is None
    try:
        bound = everything.bind(arguments)
    except ArgumentsError:
        assert not follows
    else:
        assert set(bound) == set(arguments)


def test_every_schema_made_is_a_json_schema() -> None:
    assert schema_problem(everything.input_schema) is None
