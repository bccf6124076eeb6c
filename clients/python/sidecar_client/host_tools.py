"""Tools that a host carries out itself: a function, and what the model has to know of it. Speaks with no sidecar.

@host_tool(approval_mode="always_require", timeout=30)
async def delete_file(path: str) -> str:
    \"\"\"Delete a file of the workspace.\"\"\"
"""

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast

from .calling import Crashed
from .calling import call as call_function
from .input_schema import input_schema as schema_of
from .input_schema import parameters_of
from .types import Block, CallToolParams, CallToolResult, HostTool, Json, JsonObject

P = ParamSpec("P")
R = TypeVar("R")
ApprovalMode: TypeAlias = Literal["never_require", "always_require"]
_MANY: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_log: Final = logging.getLogger(__name__)


class ToolFailure(Exception):
    """Raised by a tool to say in words what went wrong: the model reads its class's name and its message.

    Of every other exception the model is told the class's name only, because its message may hold what is not the
    model's to know.
    """


@dataclass(frozen=True)
class ToolCall:
    """A call as the sidecar asks for it. A tool gets it through a parameter that is annotated with this class."""

    session_id: str
    run_id: str
    call_id: str
    """The model's id of the call."""
    name: str
    arguments: JsonObject
    kwargs: JsonObject = field(default_factory=dict[str, Any])
    """The run's `functionInvocationKwargs`, which the model does not see."""
    deadline_ms: int | None = None
    """After this the call is taken back; None: it is waited for."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool gives where text or content blocks are not enough."""

    content: str | list[Block] = ""
    structured_content: Json = None
    is_error: bool = False
    """Whether the model is told that the call failed."""


class FunctionTool(Generic[P, R]):
    """A function as a tool. Made by `host_tool`; called directly it is the function.

    Attributes:
        declaration: What the sidecar is told of it.
    """

    def __init__(self, function: Callable[P, R], declaration: HostTool, call_parameter: str | None) -> None:
        self.declaration = declaration
        self._function = function
        self._call_parameter = call_parameter
        self._parameters = parameters_of(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself; no sidecar learns of it."""
        return self._function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return self.declaration["name"]

    async def answer(self, params: CallToolParams) -> CallToolResult:
        """Carry out a call. Whatever goes wrong in the function is a result too: an error that the model reads."""
        given = dict(params["arguments"])
        if self._call_parameter is not None:
            given[self._call_parameter] = _call_of(params)
        try:
            self._fit(given)
            return result_of(await call_function(self._function, **given))
        except ToolFailure as failure:
            return {"content": f"{type(failure).__name__}: {failure}", "isError": True}
        except Exception as error:
            _log.exception("the tool %s failed", self.name)
            name = str(error) if isinstance(error, Crashed) else type(error).__name__
            return {"content": f"the tool failed: {name}", "isError": True}

    def _fit(self, given: JsonObject) -> None:
        """Hold the arguments against the function's parameters.

        Raises:
            ToolFailure: They do not fit; only names are told.
        """
        parameters = self._parameters.values()
        missing = [p.name for p in parameters if p.default is p.empty and p.kind not in _MANY and p.name not in given]
        if missing:
            raise ToolFailure(f"missing arguments: {', '.join(missing)}")
        unknown = [name for name in given if name not in self._parameters]
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise ToolFailure(f"there are no such arguments: {', '.join(unknown)}")


AnyTool: TypeAlias = FunctionTool[..., Any]


def host_tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: JsonObject | None = None,
    title: str | None = None,
    kind: str | None = None,
    approval_mode: ApprovalMode | None = None,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function, asynchronous or not; the model's arguments come to it by name.

    It returns text, a list of content blocks, a `ToolResult`, or None for nothing. A function that is not asynchronous
    runs in a thread. A cancelled call cancels the task of an asynchronous function.

    Args:
        name: Default: the function's.
        description: What the model reads of it. Default: the function's docstring.
        input_schema: JSON Schema of the arguments. Default: read off the function's annotations.
        title: For people.
        kind: What it does, e.g. `read`, `edit`, `execute`: for people who are asked for consent.
        approval_mode: `always_require`: a person is asked before each call.
        timeout: Seconds until the sidecar gives a call up.

    Raises:
        TypeError: There is no description, or the annotations say no schema.
    """

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        its_name: str = name or getattr(function, "__name__", "")
        text = description or inspect.getdoc(function)
        if not its_name or not text:
            raise TypeError(f"the tool {its_name!r} needs a name and a description, or a docstring")
        parameters = parameters_of(function)
        calls = [key for key, parameter in parameters.items() if parameter.annotation in (ToolCall, ToolCall.__name__)]
        described = {key: parameter for key, parameter in parameters.items() if key not in calls}
        declaration = HostTool(
            name=its_name, description=text, inputSchema=schema_of(described) if input_schema is None else input_schema
        )
        if title is not None:
            declaration["title"] = title
        if kind is not None:
            declaration["kind"] = kind
        if approval_mode is not None:
            declaration["approvalMode"] = approval_mode
        if timeout is not None:
            declaration["timeoutMs"] = round(timeout * 1000)
        return FunctionTool(function, declaration, calls[0] if calls else None)

    return decorate


def result_of(value: object) -> CallToolResult:
    """What a tool returned, as the sidecar wants it.

    Raises:
        TypeError: It is neither text, nor blocks, nor a `ToolResult`, nor None.
    """
    match value:
        case None:
            return {"content": []}
        case str():
            return {"content": value}
        case list():
            return {"content": cast("list[Block]", value)}
        case ToolResult():
            result = CallToolResult(content=value.content)
            if value.structured_content is not None:
                result["structuredContent"] = value.structured_content
            if value.is_error:
                result["isError"] = True
            return result
        case _:
            raise TypeError(f"a tool gives text, blocks, a ToolResult or None, not {type(value).__name__}")


def _call_of(params: CallToolParams) -> ToolCall:
    return ToolCall(
        session_id=params["sessionId"],
        run_id=params["runId"],
        call_id=params["callId"],
        name=params["name"],
        arguments=params["arguments"],
        kwargs=params.get("kwargs") or {},
        deadline_ms=params.get("deadlineMs"),
    )
