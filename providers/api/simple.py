"""A provider in two functions: what to add before a run, what to learn after it. It filters and stamps by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from protocol.agents import RunOptions
from protocol.messages import Message

from .context import SessionContext
from .filters import EXTERNAL, MessageFilter, Sources, everything, filter_of, request_messages
from .middleware import Middleware
from .ports import AgentView
from .provider import ContextProvider, Phase, ProviderConfig, Surroundings
from .session import Session, State

if TYPE_CHECKING:
    from .tool import FunctionTool


class SimpleConfig(ProviderConfig):
    """Whose messages a provider looks at: types of sources (`external`, `history`, `provider`, …) and source ids."""

    provide_sources: tuple[str, ...] | None = None
    """Before the run; default: what the host sent."""
    store_request_sources: tuple[str, ...] | None = None
    """After it, of what the model was asked; default: what the host sent."""
    store_response_sources: tuple[str, ...] | None = None
    """After it, of what was answered; default: everything."""


@dataclass(frozen=True, slots=True)
class ProvideRequest:
    """A run that is about to begin."""

    agent: AgentView
    session: Session
    context: SessionContext
    """The whole run, with nothing filtered out."""
    state: State
    messages: Sequence[Message]
    """Only those of `provide_sources`."""

    @property
    def text(self) -> str:
        """The texts of `messages`, a line each."""
        return _joined(self.messages)

    @property
    def instructions(self) -> Sequence[str]:
        """What providers before this one have added."""
        return [instruction.text for instruction in self.context.instructions]

    @property
    def tools(self) -> "Sequence[FunctionTool]":
        """What the model is offered so far."""
        return [offered.tool for offered in self.context.tools]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A run that succeeded."""

    agent: AgentView
    session: Session
    context: SessionContext
    """The whole run, with nothing filtered out."""
    state: State
    request: Sequence[Message]
    """What the model was asked; only messages of `store_request_sources`."""
    response: Sequence[Message]
    """What was answered, tool calls and their results included; only messages of `store_response_sources`."""

    @property
    def request_text(self) -> str:
        """The texts of `request`, a line each."""
        return _joined(self.request)

    @property
    def response_text(self) -> str:
        """The texts of `response`, a line each."""
        return _joined(self.response)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """What a provider adds to a run. What takes something away comes first, then what is added."""

    instructions: str | Sequence[str] = ()
    messages: Message | Sequence[Message] = ()
    tools: "FunctionTool | Sequence[FunctionTool]" = ()
    middleware: Middleware | Sequence[Middleware] = ()
    """Around model calls or tool calls."""
    options: RunOptions | None = None
    """For what neither the agent nor the run has set."""
    replace_messages: Sequence[Message] | None = None
    """Stand in the place of all context messages so far; the run's input stays."""
    replace_instructions: str | Sequence[str] | None = None
    """Stand in the place of all instructions that providers have added so far."""
    remove_tools: Sequence[str] = ()
    """Names of tools that the model is not offered in this run."""


Contribution = Provided | str | Message | Sequence[Message] | None
"""What `provide` may return: a string is an instruction, `None` is nothing."""


class SimpleProvider(ContextProvider):
    """Override `provide`, `store`, or both; `before_run` and `after_run` are this class's own.

        class Likes(SimpleProvider):
            async def provide(self, request):
                return f"The user likes {request.state['food']}." if "food" in request.state else None

            async def store(self, exchange):
                if "sushi" in exchange.request_text:
                    exchange.state["food"] = "sushi"

    `store` is not called after a run that failed: nothing of a failed run should be remembered. What the messages are
    filtered by comes from the entry's config, or else from the constructor.
    """

    config_type: ClassVar[type[ProviderConfig]] = SimpleConfig

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        *,
        provide_sources: Sources | None = None,
        store_request_sources: Sources | None = None,
        store_response_sources: Sources | None = None,
    ) -> None:
        super().__init__(source_id, config, surroundings)
        entry = self.config if isinstance(self.config, SimpleConfig) else SimpleConfig()
        self._asked = _chosen(entry.provide_sources, provide_sources, EXTERNAL)
        self._stored_request = _chosen(entry.store_request_sources, store_request_sources, EXTERNAL)
        self._stored_response = _chosen(entry.store_response_sources, store_response_sources, everything)

    async def provide(self, request: ProvideRequest) -> Contribution:
        """What to add to the run. Messages are stamped as this provider's, unless they are another's already."""

    async def store(self, exchange: Exchange) -> None:
        """Learn from a run that succeeded."""

    def takes_part(self, phase: Phase) -> bool:
        """Whether it has a function for that."""
        if phase == "beforeRun":
            return type(self).provide is not SimpleProvider.provide
        return type(self).store is not SimpleProvider.store

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Ask `provide`, and add what it returns.

        Raises:
            TypeError: it returned something else than it may.
        """
        messages = request_messages(context, self._asked)
        provided = _provided(await self.provide(ProvideRequest(agent, session, context, state, messages)))
        if provided.replace_messages is not None:
            context.replace_messages(self, provided.replace_messages)
        if provided.replace_instructions is not None:
            context.replace_instructions(self, provided.replace_instructions)
        context.remove_tools(self, provided.remove_tools)
        added = provided.messages
        context.extend_messages(self, [added] if isinstance(added, Message) else added)
        context.extend_instructions(self, provided.instructions)
        context.extend_tools(self, provided.tools)
        context.extend_middleware(self, provided.middleware)
        if provided.options is not None:
            context.extend_options(self, provided.options)

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Give `store` the run."""
        request = request_messages(context, self._stored_request)
        answered = context.response.messages if context.response is not None else ()
        response = list(self._stored_response(answered))
        await self.store(Exchange(agent, session, context, state, request, response))


def _chosen(configured: Sources | None, given: Sources | None, default: MessageFilter) -> MessageFilter:
    sources = configured if configured is not None else given
    return default if sources is None else filter_of(sources)


def _provided(contribution: object) -> Provided:
    match contribution:
        case None:
            return Provided()
        case Provided():
            return contribution
        case str():
            return Provided(instructions=contribution)
        case Message():
            return Provided(messages=contribution)
        case Sequence() if all(isinstance(item, Message) for item in cast("Sequence[object]", contribution)):
            return Provided(messages=cast("Sequence[Message]", contribution))
        case _:
            kind = type(contribution).__name__
            raise TypeError(f"provide must return Provided, a string, messages or None, not a {kind}")


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages if message.text.strip())
