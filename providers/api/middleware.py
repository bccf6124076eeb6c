"""Middleware: what stands around a run, around each model call, and around each tool call. Only the vocabulary.

Each kind gets its context and `call_next`, which takes no arguments:

    class Stamp(AgentMiddleware):
        async def process(self, context, call_next):
            context.session.state["requestId"] = context.properties.get("requestId")
            await call_next()

Not calling `call_next` leaves out what is inside. `context.result` is the outcome; setting it replaces that.
`MiddlewareTermination` ends the work early with `context.result`; `MiddlewareFailure` fails the run loudly. Any other
exception fails what the middleware stands around: it never opens a gate.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, cast, get_type_hints

from protocol.agents import RunOptions
from protocol.messages import Message

from .context import Response
from .invocation import FunctionInvocationContext
from .ports import AgentView, ChatAnswer, ToolSpec
from .run_context import RunContext
from .session import Session

CallNext = Callable[[], Awaitable[None]]
"""Does what is inside: the next middleware, and at last the work itself."""

MiddlewareKind = Literal["agent", "chat", "function"]


class MiddlewareTermination(Exception):
    """Ends the run (agent), the model call (chat) or the tool loop (function) with `context.result` as it stands."""

    def __init__(self, message: str = "", *, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
        """Replaces `context.result`, unless it is `None`."""


class MiddlewareFailure(Exception):
    """Fails the whole run at once; the text is told to the host. For guards that must not be passed over."""


class MiddlewareError(Exception):
    """Something is no middleware, or its kind cannot be told."""


@dataclass(slots=True)
class AgentContext:
    """Around a run: before any provider is called, and after all of them were."""

    agent: AgentView
    session: Session | None
    """`None` in a run without a session."""
    messages: list[Message]
    """The input. What is changed here is what the model sees; the transcript keeps what the host sent."""
    options: RunOptions
    properties: Mapping[str, Any]
    """What the host says of this run."""
    kwargs: dict[str, Any]
    """For tools and function middleware."""
    client_kwargs: dict[str, Any]
    """For the chat client and chat middleware."""
    is_streaming: bool = True
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """A scratch pad for the middleware of this run."""
    result: Response | None = None


@dataclass(slots=True)
class ChatContext:
    """Around one model call."""

    model: str
    """`endpoint:model`."""
    messages: list[Message]
    instructions: str
    options: RunOptions
    tools: Sequence[ToolSpec]
    client_kwargs: dict[str, Any]
    session: Session | None
    run: RunContext
    hold_text: bool = False
    """Set before `call_next`: nothing of the answer is sent on before all middleware has seen it."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    result: ChatAnswer | None = None


class AgentMiddleware(ABC):
    """Stands around a run."""

    @abstractmethod
    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Do something, `await call_next()` once or not at all, do something else."""


class ChatMiddleware(ABC):
    """Stands around every model call of a run."""

    @abstractmethod
    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """As `AgentMiddleware.process`; calling `call_next` again makes the call again."""


class FunctionMiddleware(ABC):
    """Stands around every tool call of a run."""

    @abstractmethod
    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        """As `AgentMiddleware.process`. A call that is left out gets `context.result`, else an error result."""


Middleware = AgentMiddleware | ChatMiddleware | FunctionMiddleware | Callable[[Any, CallNext], Awaitable[None]]
"""An instance of one of the classes, or an async function `(context, call_next)`."""

F = TypeVar("F", bound=Callable[[Any, CallNext], Awaitable[None]])

_MARK: Final = "__agent_sidecar_middleware__"
_CLASSES: Final[dict[type, MiddlewareKind]] = {
    AgentMiddleware: "agent",
    ChatMiddleware: "chat",
    FunctionMiddleware: "function",
}
_CONTEXTS: Final[dict[type, MiddlewareKind]] = {
    AgentContext: "agent",
    ChatContext: "chat",
    FunctionInvocationContext: "function",
}


def agent_middleware(function: F) -> F:
    """Mark an async function as agent middleware."""
    return _marked(function, "agent")


def chat_middleware(function: F) -> F:
    """Mark an async function as chat middleware."""
    return _marked(function, "chat")


def function_middleware(function: F) -> F:
    """Mark an async function as function middleware."""
    return _marked(function, "function")


def kind_of(middleware: Middleware) -> MiddlewareKind:
    """Which kind it is: by its class, its decorator, or the annotation of its first parameter.

    Raises:
        MiddlewareError: it is none, its decorator and its annotation disagree, or neither tells.
    """
    for base, kind in _CLASSES.items():
        if isinstance(middleware, base):
            return kind
    if isinstance(middleware, type) or not callable(middleware):
        raise MiddlewareError(f"{name_of(middleware)} is no middleware: give an instance of a class, or a function")
    parameters = list(inspect.signature(middleware).parameters.values())
    if len(parameters) < 2:
        raise MiddlewareError(f"{name_of(middleware)} must take (context, call_next)")
    marked = cast("MiddlewareKind | None", getattr(middleware, _MARK, None))
    annotated = _annotated_kind(middleware, parameters[0].name)
    if marked is not None and annotated is not None and marked != annotated:
        raise MiddlewareError(f"{name_of(middleware)} is marked as {marked} middleware, but annotated as {annotated}")
    kind = marked or annotated
    if kind is None:
        raise MiddlewareError(
            f"the kind of {name_of(middleware)} cannot be told: annotate its first parameter (AgentContext,"
            " ChatContext, FunctionInvocationContext), or decorate it"
        )
    return kind


def processor_of(middleware: Middleware) -> Callable[[Any, CallNext], Awaitable[None]]:
    """What is called with `(context, call_next)`."""
    if isinstance(middleware, AgentMiddleware | ChatMiddleware | FunctionMiddleware):
        return middleware.process
    return middleware


def name_of(middleware: object) -> str:
    """What it is called in messages."""
    name: object = getattr(middleware, "__qualname__", None)
    return name if isinstance(name, str) else type(middleware).__name__


def _marked(function: F, kind: MiddlewareKind) -> F:
    setattr(function, _MARK, kind)
    return function


def _annotated_kind(middleware: Callable[..., Any], parameter: str) -> MiddlewareKind | None:
    function = middleware if inspect.isroutine(middleware) else type(middleware).__call__
    try:
        hint: object = get_type_hints(function).get(parameter)
    except (NameError, TypeError):  # an annotation that cannot be looked up tells nothing
        return None
    return _CONTEXTS.get(hint) if isinstance(hint, type) else None
