"""The base classes of providers: hooks around every run, and the history that feeds the model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from protocol.base import StrictModel
from protocol.messages import Message

from .context import SessionContext
from .ports import AgentView, HistoryStore
from .session import Session, State


class ProviderConfig(StrictModel):
    """The base of a provider's config model. Unknown keys are refused."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a provider may use of the process that hosts it."""

    cwd: str | None = None
    """The session's working directory."""
    history: HistoryStore | None = None
    """The transcript store; `None` in a run without a session."""


class ContextProvider:
    """Takes part in every run: adds context before the model is called, learns from it afterwards.

    One instance serves one open session, but may be made anew at any time: what must last goes into `state`, which is
    stored with the run. `state` is the provider's own object in the session's state bag.
    """

    config_type: ClassVar[type[ProviderConfig]] = ProviderConfig
    on_error: ClassVar[Literal["fail", "warn"]] = "fail"
    """What a failure in `before_run` does to the run, unless the entry says otherwise."""
    position: ClassVar[Literal["before_input", "after_input"]] = "before_input"
    """Where its messages stand, unless the entry says otherwise."""

    def __init__(
        self, source_id: str, config: ProviderConfig | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.source_id = source_id
        self.config = config if config is not None else self.config_type()
        self.surroundings = surroundings or Surroundings()

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add messages and instructions before the model is called."""

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Learn from a run that succeeded; `context.response` is its answer."""

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
        """The run failed or was cut after this provider had begun. What is written to `state` may be dropped."""


class HistoryProvider(ContextProvider, ABC):
    """Feeds earlier turns to the model. A session has at most one that loads."""

    load_messages: bool = True

    @abstractmethod
    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The earlier turns, oldest first."""

    @abstractmethod
    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Keep the messages of a run that succeeded."""

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Load, where this provider loads."""
        if self.load_messages:
            context.load_history(self, await self.get_messages(context.session_id, state=state))

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Save the turn: its input and its answer, never what other providers added."""
        turn = [*context.input_messages, *(context.response.messages if context.response else ())]
        if turn:
            await self.save_messages(context.session_id, turn, state=state)
