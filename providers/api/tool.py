"""Tools as authors write them: a function, and what the model is told of it. It binds arguments, and calls nothing.

    @tool
    async def forecast(city: Annotated[str, "where"], days: int = 1) -> Report:
        '''Tell the weather of the next days.'''

On a method, `instance.method` is the tool of that instance. A parameter annotated `FunctionInvocationContext` is given
the call's context, and the model never hears of it.
"""

import hashlib
import inspect
import json
import re
import threading
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import MethodType
from typing import Any, Final, NamedTuple, cast, overload
from weakref import WeakValueDictionary

from pydantic import BaseModel

from protocol.base import JsonObject
from protocol.tools import ApprovalMode

from .ports import HostedTool, ToolSpec
from .tool_result import SKIP_PARSING as SKIP_PARSING
from .tool_result import ResultParser
from .tool_schema import ArgumentPlan, explicit_plan, signature_plan, whole_object_plan
from .tool_schema import ArgumentsError as ArgumentsError

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Preview(NamedTuple):
    """What people are shown of a call before they decide about it."""

    text: str
    seal: str = ""
    """Stored with the question, and given to the call that was allowed (`FunctionInvocationContext.seal`): by it the
    tool can tell whether it would still do what was shown."""


LookAhead = Callable[[JsonObject], Awaitable[Preview]]
"""Says what a call would do, given the model's arguments. It may raise as the tool itself may."""


class ToolError(Exception):
    """A tool raises it to tell the model what went wrong: the text becomes an error result."""


class _Uses:
    """How often a tool was called and failed. Calls may start on any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0
        self.failures = 0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FunctionTool:
    """A tool. Made by `tool` or `tool_from_schema`; two tools are the same only if they are one object."""

    name: str
    description: str
    plan: ArgumentPlan = field(repr=False)
    """How the model's arguments become the function's."""
    function: Callable[..., Any] | None = None
    """`None` for a tool that is only declared: somebody else carries it out."""
    title: str | None = None
    """What people are shown."""
    kind: str | None = None
    """What sort of action it is, for people who are asked."""
    approval_mode: ApprovalMode = "never_require"
    max_invocations: int | None = None
    """Calls in the lifetime of this object; `None`: any number."""
    max_invocation_exceptions: int | None = None
    """Failed calls in the lifetime of this object, after which it refuses; `None`: any number."""
    result_parser: ResultParser | None = None
    """Turns what the function returned into what `tool_result` understands; `SKIP_PARSING`: text or blocks, as is."""
    is_async: bool = False
    takes_self: bool = False
    """Whether it is a method without its instance: only `instance.method` can be called."""
    hosted: HostedTool | None = None
    """What the model's service does by itself under this name; such a tool is never called here."""
    preview: LookAhead | None = field(default=None, repr=False)
    """What people who are asked about a call are shown instead of its description. If it raises, the call fails with
    that, and nobody is asked."""
    is_remote: bool = False
    """Whether somebody else carries it out, in a time that is agreed with them: the limit of our own does not count."""
    schema_hash: str = field(init=False, repr=False)
    """SHA-256, in hex, of the name and the schema: it changes when what was once approved has changed."""
    _spec: ToolSpec = field(init=False, repr=False)
    _uses: _Uses = field(init=False, repr=False, default_factory=_Uses)
    _bound: "WeakValueDictionary[int, FunctionTool]" = field(
        init=False, repr=False, default_factory=WeakValueDictionary
    )
    """By the id of the instance, which lives as long as its tool does. It must be no strong reference: that would
    keep every instance alive, since a bound tool holds its own."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"tool name {self.name!r} must be 1 to 64 of A-Z, a-z, 0-9, _ and -; give name=")
        for limit in ("max_invocations", "max_invocation_exceptions"):
            number: int | None = getattr(self, limit)
            if number is not None and number < 1:
                raise ValueError(f"{limit} of tool {self.name!r} must be at least 1")
        canonical = json.dumps([self.name, self.input_schema], sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "schema_hash", hashlib.sha256(canonical.encode()).hexdigest())
        object.__setattr__(self, "_spec", ToolSpec(self.name, self.description, self.input_schema, self.hosted))

    @property
    def input_schema(self) -> JsonObject:
        """JSON Schema of the arguments."""
        return self.plan.schema

    @property
    def context_parameter(self) -> str | None:
        """The parameter that is given the `FunctionInvocationContext`."""
        return self.plan.context_parameter

    @property
    def takes_kwargs(self) -> bool:
        """Whether the function's `**kwargs` are given the run's."""
        return self.plan.takes_kwargs

    @property
    def is_declaration_only(self) -> bool:
        """Whether there is nothing here to call."""
        return self.function is None

    @property
    def invocations(self) -> int:
        """How often it was called."""
        return self._uses.calls

    def spec(self) -> ToolSpec:
        """The tool as a model is told of it: the same object each time."""
        return self._spec

    def bind(self, arguments: JsonObject) -> dict[str, Any]:
        """The model's arguments as values for the function, by parameter.

        May take long where `plan.may_take_long`: call it off the loop then.

        Raises:
            ArgumentsError: they do not fit.
        """
        return self.plan.bind(arguments)

    def count(self) -> None:
        """Count one call that is about to start.

        Raises:
            ToolError: the tool was called, or failed, as often as it may.
        """
        uses = self._uses
        with uses.lock:
            if self.max_invocations is not None and uses.calls >= self.max_invocations:
                raise ToolError(f"Tool {self.name!r} was called {uses.calls} times and cannot be called again.")
            if self.max_invocation_exceptions is not None and uses.failures >= self.max_invocation_exceptions:
                raise ToolError(f"Tool {self.name!r} failed {uses.failures} times and cannot be called again.")
            uses.calls += 1

    def count_failure(self) -> None:
        """Count a call that failed."""
        with self._uses.lock:
            self._uses.failures += 1

    def __get__(self, instance: object | None, owner: type | None = None) -> "FunctionTool":
        if instance is None or not self.takes_self or self.function is None:
            return self
        with self._uses.lock:
            bound = self._bound.get(id(instance))
            if bound is None:
                bound = replace(self, function=MethodType(self.function, instance), takes_self=False)
                self._bound[id(instance)] = bound
            return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function, as if it were no tool: nothing is checked or counted.

        Raises:
            TypeError: there is no function.
        """
        if self.function is None:
            raise TypeError(f"tool {self.name!r} is only declared")
        return self.function(*args, **kwargs)


_NO_FUNCTIONS: Final[tuple[type, ...]] = (FunctionTool, classmethod, staticmethod)


@overload
def tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    schema: type[BaseModel] | JsonObject | None = None,
    title: str | None = None,
    kind: str | None = None,
    approval_mode: ApprovalMode = "never_require",
    max_invocations: int | None = None,
    max_invocation_exceptions: int | None = None,
    result_parser: ResultParser | None = None,
) -> FunctionTool: ...


@overload
def tool(
    function: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: type[BaseModel] | JsonObject | None = None,
    title: str | None = None,
    kind: str | None = None,
    approval_mode: ApprovalMode = "never_require",
    max_invocations: int | None = None,
    max_invocation_exceptions: int | None = None,
    result_parser: ResultParser | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: type[BaseModel] | JsonObject | None = None,
    **settings: Any,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function or method; also a decorator, with or without arguments.

    Args:
        function: sync or async. Sync functions are run in a thread.
        name: what the model calls it; the function's name by default.
        description: what the model is told of it; the first paragraph of the docstring by default.
        schema: the arguments, instead of what the signature says: a pydantic model, or a JSON Schema object.
        **settings: the other fields of `FunctionTool`.

    Raises:
        ValueError: the name, the signature or the schema cannot be used.
        TypeError: `function` is none, or a tool already.
    """
    if function is not None:
        return _made(function, name, description, schema, settings)

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        return _made(function, name, description, schema, settings)

    return decorate


def tool_from_schema(
    function: Callable[..., Any] | None,
    *,
    name: str,
    description: str,
    schema: JsonObject | None = None,
    **settings: Any,
) -> FunctionTool:
    """Make a tool whose arguments are known from elsewhere: a host's, a server's, another agent's.

    Args:
        function: is called as `function(arguments=..., context=...)` with the whole object; `None`: only declared.
        name: what the model calls it.
        description: what the model is told of it.
        schema: JSON Schema of the arguments; by default there are none.
        **settings: the other fields of `FunctionTool`.

    Raises:
        ValueError: the name or the schema cannot be used.
    """
    is_async = function is not None and inspect.iscoroutinefunction(_innermost(function))
    plan = whole_object_plan(schema)
    return FunctionTool(name, description, plan, function, is_async=is_async, **settings)


def _made(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    schema: type[BaseModel] | JsonObject | None,
    settings: dict[str, Any],
) -> FunctionTool:
    if isinstance(function, _NO_FUNCTIONS) or not callable(function):
        kind = type(cast("object", function)).__name__
        raise TypeError(f"tool() takes a plain function, not a {kind}; @staticmethod stands above @tool")
    inner = _innermost(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ValueError(f"tool {_name(function)!r} is a generator; return a list instead")
    plan = signature_plan(function) if schema is None else explicit_plan(function, schema)
    made = FunctionTool(
        name=_name(function) if name is None else name,
        description=_first_paragraph(inner) if description is None else description,
        plan=plan,
        function=function,
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner),
        takes_self=plan.takes_self,
        **settings,
    )
    if made.takes_kwargs:
        warnings.warn(
            f"tool {made.name!r}: instead of **kwargs, take a FunctionInvocationContext, and read its kwargs",
            DeprecationWarning,
            stacklevel=3,  # where the tool is written
        )
    return made


def _unfilled(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial calls."""
    while isinstance(function, partial):
        function = function.func
    return function


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """What holds the code: of a callable object its `__call__`."""
    function = _unfilled(function)
    return function if inspect.isroutine(function) else type(function).__call__


def _name(function: Callable[..., Any]) -> str:
    function = _unfilled(function)
    return str(getattr(function, "__name__", type(function).__name__))


def _first_paragraph(function: Callable[..., Any]) -> str:
    paragraph = (inspect.getdoc(function) or "").strip().partition("\n\n")[0]
    return " ".join(paragraph.split())
