"""Puts fixed messages before the model on every run. It keeps no state."""

from typing import cast

from pydantic import Field

from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig
from providers.api.session import Session, State


class StaticMessagesConfig(ProviderConfig):
    """The messages."""

    messages: tuple[Message, ...] = Field(min_length=1)


class StaticMessagesProvider(ContextProvider):
    """Adds the configured messages to each run, attributed to this provider.

    Seed 004 uses one to remind the model of the date.
    """

    config_type = StaticMessagesConfig

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add them."""
        context.extend_messages(self, cast("StaticMessagesConfig", self.config).messages)
