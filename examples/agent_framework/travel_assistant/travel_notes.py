"""A memory that the model writes and reads itself, through tools that a provider offers."""

from typing import Annotated, Final, cast

from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig
from providers.api.session import Session, State
from providers.api.tool import tool

_NOTES: Final[dict[str, list[str]]] = {}
"""By scope. It lasts as long as the sidecar; put a database here to keep notes longer."""


class TravelNotesConfig(ProviderConfig):
    """Whose notes they are."""

    scope: str | None = None
    """Sessions of one scope share their notes, `users/ada` for example; by default each session has its own."""


class TravelNotesProvider(ContextProvider):
    """Offers the model two tools: one to keep a note, one to read all of them."""

    config_type = TravelNotesConfig

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Tools for this run, over the notes of its scope."""
        scope = cast("TravelNotesConfig", self.config).scope or f"sessions/{session.session_id}"
        notes = _NOTES.setdefault(scope, [])

        @tool
        def travel_notes_write(note: Annotated[str, "One fact about the user."]) -> str:
            """Keep a note about the user."""
            notes.append(note)
            return f"Kept as note {len(notes)}."

        @tool
        def travel_notes_read() -> str:
            """Read every note about the user."""
            return "\n".join(notes) or "There are no notes."

        context.extend_instructions(self, "Keep notes of what the user tells about themselves, and read them first.")
        context.extend_tools(self, [travel_notes_write, travel_notes_read])
