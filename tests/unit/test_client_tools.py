"""A host's tools in the Python client: what the sidecar is told of a function, and what becomes of a call."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest

from sidecar_client import ToolCall, ToolFailure, ToolResult, host_tool
from sidecar_client.input_schema import input_schema
from sidecar_client.types import CallToolParams


def call(arguments: dict[str, Any], **more: Any) -> CallToolParams:
    fields: Any = {"sessionId": "s", "runId": "r", "requestId": "q", "callId": "c", "name": "t", **more}
    return {**fields, "arguments": arguments}


@host_tool()
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return f"hello {name} " * times


def test_a_function_says_what_the_model_is_told_of_it() -> None:
    assert greet.declaration == {
        "name": "greet",
        "description": "Greet somebody.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
            "required": ["name"],
            "additionalProperties": False,
        },
    }
    assert greet("you") == "hello you "


def test_what_is_said_of_a_tool_comes_before_what_is_read_off_it() -> None:
    schema = {"type": "object", "properties": {"file-path": {"type": "string"}}}

    @host_tool(
        name="rm",
        description="Remove.",
        input_schema=schema,
        title="Remove",
        kind="edit",
        approval_mode="always_require",
        timeout=1.5,
    )
    def anything(**arguments: object) -> str:
        return str(arguments)

    assert anything.declaration == {
        "name": "rm",
        "description": "Remove.",
        "inputSchema": schema,
        "title": "Remove",
        "kind": "edit",
        "approvalMode": "always_require",
        "timeoutMs": 1500,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Any, {}),
        (float, {"type": "number"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (list, {"type": "array"}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[str, "a path"], {"type": "string", "description": "a path"}),
    ],
)
def test_an_annotation_becomes_a_schema(annotation: Any, schema: dict[str, Any]) -> None:
    parameter = inspect.Parameter("it", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    assert input_schema({"it": parameter})["properties"] == {"it": schema}


def unannotated(it):
    """A tool."""


def positional(it: str, /) -> None:
    """A tool."""


def foreign(it: complex) -> None:
    """A tool."""


def unsaid(it: str) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (unannotated, "'it': it has no annotation; give the tool its input_schema"),
        (positional, "which the parameter 'it' cannot take"),
        (foreign, "complex has no schema"),
        (unsaid, "needs a name and a description"),
    ],
)
def test_what_cannot_be_read_off_a_function_is_asked_for(function: Callable[..., object], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        host_tool()(function)


async def test_an_annotation_that_cannot_be_resolved_does_not_hide_the_call() -> None:
    async def late(call: "ToolCall", it: "NotThere") -> str:  # noqa: F821
        return f"{call.call_id} {it}"

    tool = host_tool(description="A tool.", input_schema={"type": "object"})(late)
    assert await tool.answer(call({"it": 1})) == {"content": "c 1"}
    with pytest.raises(TypeError, match="give the tool its input_schema"):
        host_tool(description="A tool.")(late)


async def test_a_tool_gets_its_arguments_by_name_and_the_call_where_it_asks_for_it() -> None:
    @host_tool()
    async def whoami(call: ToolCall, greeting: str) -> str:
        """Say who calls."""
        return f"{greeting} {call.kwargs['user']} {call.call_id} {call.session_id} {call.deadline_ms}"

    assert "call" not in whoami.declaration["inputSchema"]["properties"]
    asked = call({"greeting": "hi", "call": "forged"}, kwargs={"user": "ann"}, deadlineMs=9)
    assert await whoami.answer(asked) == {"content": "hi ann c s 9"}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", {"content": "text"}),
        (None, {"content": []}),
        ([{"type": "text", "text": "a"}], {"content": [{"type": "text", "text": "a"}]}),
        (ToolResult("two", structured_content={"n": 2}), {"content": "two", "structuredContent": {"n": 2}}),
        (ToolResult("no", is_error=True), {"content": "no", "isError": True}),
    ],
)
async def test_what_a_tool_returns_becomes_a_result(value: Any, result: dict[str, Any]) -> None:
    @host_tool(description="Gives something.")
    def give() -> Any:
        return value

    assert await give.answer(call({})) == result


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({}, "missing arguments: name"), ({"name": "a", "age": 3}, "there are no such arguments: age")],
)
async def test_arguments_that_do_not_fit_are_an_error_that_the_model_can_mend(arguments: Any, text: str) -> None:
    assert await greet.answer(call(arguments)) == {"content": f"ToolFailure: {text}", "isError": True}


async def test_a_failure_is_told_in_words_and_another_exception_by_its_name_only() -> None:
    class NoSuchFile(ToolFailure):
        pass

    @host_tool()
    async def read(path: str) -> str:
        """Read a file."""
        raise NoSuchFile("a.txt is not there") if path == "a.txt" else KeyError("password")

    assert await read.answer(call({"path": "a.txt"})) == {"content": "NoSuchFile: a.txt is not there", "isError": True}
    assert await read.answer(call({"path": "b.txt"})) == {"content": "the tool failed: KeyError", "isError": True}


async def test_a_tool_that_returns_something_else_has_failed() -> None:
    @host_tool(description="Gives a number.")
    def number() -> int:
        return 3

    assert await number.answer(call({})) == {"content": "the tool failed: TypeError", "isError": True}


async def test_a_function_that_only_makes_an_awaitable_is_awaited_and_stopiteration_is_an_error() -> None:
    @host_tool(description="Calls another one.")
    def later() -> Any:
        return greet.answer(call({"name": "x"}))

    @host_tool(description="Has nothing more.")
    def empty() -> Any:
        return next(iter(()))

    assert await later.answer(call({})) == {"content": "the tool failed: TypeError", "isError": True}
    assert await empty.answer(call({})) == {"content": "the tool failed: StopIteration", "isError": True}
