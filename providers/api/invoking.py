"""Runs providers of the 2025 style: an instance a session, `invoking`, `invoked`, `serialize`. It knows no store.

Such a provider keeps its state on itself. The adapter makes it when its session first runs, and keeps what `serialize`
returns in the session's state; out of that the factory makes it again when the session is opened later, when a run's
changes were dropped, or when the host has changed the state.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, MutableSequence, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, cast
from weakref import WeakValueDictionary

from protocol.base import Json
from protocol.messages import Message

from .context import SessionContext
from .invoking_chat import ChatMessage, on_behalf_of
from .json_value import plain_json
from .ports import AgentView
from .provider import ContextProvider, ProviderConfig, Surroundings
from .session import Session, State

if TYPE_CHECKING:
    from .tool import FunctionTool

T = TypeVar("T")

MOST_LIVE: Final = 64
"""Sessions whose providers are kept ready between runs; those of others are made again."""


@dataclass(slots=True)
class Context:
    """What a provider adds to a run."""

    instructions: str | None = None
    messages: Sequence[ChatMessage | Message] | None = None
    tools: "Sequence[FunctionTool] | None" = None


class InvokingProvider:
    """The base of these providers. It is entered before `invoking` and left after `invoked`, in every run."""

    async def invoking(self, messages: ChatMessage | MutableSequence[ChatMessage], **kwargs: Any) -> Context:
        """What to add to the run; `messages` is its input, always a list."""
        return Context()

    async def invoked(
        self,
        request_messages: ChatMessage | Sequence[ChatMessage],
        response_messages: ChatMessage | Sequence[ChatMessage] | None = None,
        invoke_exception: Exception | None = None,
        **kwargs: Any,
    ) -> None:
        """Learn from the run. After one that failed there is no response, but its exception."""

    async def thread_created(self, thread_id: str | None) -> None:
        """The session is new: nothing was stored for it yet."""

    def serialize(self) -> Any:
        """The state as JSON, or something to await that gives it. The factory is given it back."""
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        return None


Made = InvokingProvider | Sequence[InvokingProvider]

Factory = Callable[[Json], Made]
"""Given what `serialize` returned, or `None` for a new session, makes one provider or several; of several, a list."""


@dataclass(slots=True)
class _Turn:
    """A session's providers; in a run, also what leaves them."""

    providers: tuple[InvokingProvider, ...]
    single: bool
    """The factory gave one, not a list."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    serialized: str = ""
    """What the last run has stored, as text."""


class InvokingAdapter(ContextProvider):
    """Lets providers of the 2025 style take part in runs.

        def make(state):
            return UserInfoMemory(RunChatClient(), UserInfo.model_validate_json(state) if state else None)

        memory = InvokingAdapter("memory", make)

    Several providers are asked at once; what they add stands in their order.
    """

    _made: ClassVar[WeakValueDictionary[int, InvokingProvider]] = WeakValueDictionary()
    """Every provider that is alive, by its identity: none may serve twice."""

    def __init__(
        self,
        source_id: str,
        factory: Factory,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        """Take the factory; nothing is made yet.

        Raises:
            TypeError: it is a provider, or no function.
        """
        super().__init__(source_id, config, surroundings)
        if isinstance(factory, InvokingProvider) or not callable(factory):
            raise TypeError(f"provider {source_id!r} {_ADVICE}")
        self._factory = factory
        self._turn_key = f"providers.api.invoking.{source_id}"
        self._live: dict[str, _Turn] = {}

    def providers(self, session_id: str) -> tuple[InvokingProvider, ...]:
        """A session's providers, to be looked at between its runs; none before its first run here."""
        live = self._live.get(session_id)
        return () if live is None else live.providers

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add what the providers return.

        Raises:
            TypeError: the factory returned something else than new providers.
        """
        with on_behalf_of(agent):
            turn = context.metadata[self._turn_key] = await self._entered(session, context, state)
            inputs = context.input_messages
            given = await _together(provider.invoking(_views(inputs)) for provider in turn.providers)
        for one in given:
            context.extend_instructions(self, one.instructions or ())
            context.extend_messages(self, map(_plain, one.messages or ()))
            context.extend_tools(self, one.tools or ())

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Give the providers the exchange, and keep their state."""
        response = context.response.messages if context.response is not None else ()
        with on_behalf_of(agent):
            turn: _Turn = context.metadata.pop(self._turn_key, None) or await self._entered(session, context, state)
            await self._end(turn, session, context, state, response, None)

    async def on_failure(
        self,
        *,
        agent: AgentView,
        session: Session,
        context: SessionContext,
        state: State,
        error: Exception,
        partial_text: str,
    ) -> None:
        """Give the providers the error; what they make of it is dropped with the run, or kept with it."""
        turn: _Turn | None = context.metadata.pop(self._turn_key, None)
        if turn is not None:
            with on_behalf_of(agent):
                await self._end(turn, session, context, state, None, error)

    async def _entered(self, session: Session, context: SessionContext, state: State) -> _Turn:
        """The session's providers, entered: those that are there, if they are as the state says, else new ones."""
        stored = state.get(_SERIALIZED)
        live = self._live.pop(session.session_id, None)
        if live is None or live.serialized != _text(stored):
            live = self._make(stored)
        async with AsyncExitStack() as stack:
            for provider in live.providers:
                await stack.enter_async_context(provider)
            if _SERIALIZED not in state:
                await _together(provider.thread_created(context.session_id) for provider in live.providers)
            live.stack = stack.pop_all()
        return live

    def _make(self, stored: Json) -> _Turn:
        made: object = self._factory(stored)
        providers = [*cast("Sequence[object]", made)] if isinstance(made, Sequence) else [made]
        new = [provider for provider in providers if isinstance(provider, InvokingProvider)]
        if len(new) < len(providers) or any(self._made.get(id(provider)) is provider for provider in new):
            raise TypeError(f"provider {self.source_id!r} {_ADVICE}")
        self._made.update({id(provider): provider for provider in new})
        return _Turn(tuple(new), single=isinstance(made, InvokingProvider))

    async def _end(
        self,
        turn: _Turn,
        session: Session,
        context: SessionContext,
        state: State,
        response: Sequence[Message] | None,
        error: Exception | None,
    ) -> None:
        async with turn.stack:
            inputs = context.input_messages
            await _together(
                provider.invoked(_views(inputs), None if response is None else _views(response), error)
                for provider in turn.providers
            )
            values = [await _awaited(provider.serialize()) for provider in turn.providers]
            stored = plain_json(values[0] if turn.single else values, _SERIALIZED)
            state[_SERIALIZED] = stored
            turn.serialized = _text(stored)
            if context.session_id is not None:
                self._live[session.session_id] = turn
                while len(self._live) > MOST_LIVE:
                    del self._live[next(iter(self._live))]


_SERIALIZED: Final = "serialized"
_ADVICE: Final = (
    "needs a factory that makes a new provider each time (or a list of new ones): these keep their state on themselves,"
    " and one that is shared would tell one session what it has learnt in another"
)


def _views(messages: Iterable[Message]) -> list[ChatMessage]:
    return [ChatMessage.of(message) for message in messages]


def _plain(message: ChatMessage | Message) -> Message:
    return message.message if isinstance(message, ChatMessage) else message


def _text(stored: Json) -> str:
    """The same text for the same state, however a store has ordered its keys."""
    return json.dumps(stored, sort_keys=True)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """All at once; if one fails, its error is raised when all of them have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    given: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        given.append(result)
    return given
