"""A provider that remembers the user's favorite food, in the session's state."""

import re
from typing import Final

from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider
from providers.api.session import Session, State

_FAVORITE: Final = re.compile(r"favorite food is\s+([^.!?\n]+)", re.IGNORECASE)


class UserPreferenceProvider(ContextProvider):
    """Tells the model the user's favorite food, once the user has named it."""

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Use what is known."""
        # `state` is this provider's corner of the session: a field on `self` would be lost with the process.
        if favorite := state.get("favorite_food"):
            context.extend_instructions(self, f"Favorite food of the user: {favorite}.")

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Learn from what the user has just said."""
        for message in context.input_messages:
            if found := _FAVORITE.search(message.text):
                state["favorite_food"] = found[1].strip()
