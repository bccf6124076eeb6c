"""The default history: the transcript that the sidecar keeps anyway. It stores nothing of its own."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from protocol.messages import Message
from providers.api.provider import HistoryProvider, ProviderConfig
from providers.api.session import State


class HistoryConfig(ProviderConfig):
    """Which history this is."""

    load_messages: Literal[True] = Field(default=True)
    """Feed the transcript to the model. A history that only stores comes with a later version."""


class TranscriptHistory(HistoryProvider):
    """Feeds the model from the session's transcript.

    The transcript is stored by the sidecar with the run itself, item by item, so that saving again here would be a
    second copy: `save_messages` has nothing to do.
    """

    config_type = HistoryConfig

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The transcript, shared and frozen; empty in a run without a session."""
        store = self.surroundings.history
        return () if store is None or session_id is None else await store.load(session_id)

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Nothing: the transcript has them already."""
