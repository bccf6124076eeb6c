"""What a run tells upward while it works: events, and messages to store with them. A Protocol; stores nothing."""

from dataclasses import dataclass
from typing import Protocol

from protocol.base import JsonObject
from protocol.messages import Message, Source


@dataclass(frozen=True, slots=True)
class Draft:
    """A durable event before it has a number."""

    type: str
    data: JsonObject
    """Without what `message_id` refers to."""
    message: Message | None = None
    """A message that is stored with the event and whose content belongs into it."""
    source: Source | None = None


class RunSink(Protocol):
    """Takes a run's events. `emit` is the only word that goes upward."""

    def ephemeral(self, event: str, data: JsonObject) -> None:
        """Send at once; not stored, not replayed."""
        ...

    def stage(self, draft: Draft) -> None:
        """Keep a durable event for the next `commit`."""
        ...

    async def commit(self, *drafts: Draft) -> None:
        """Store what was staged and these, then send them. Storage failures are kept for a later try."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the client is far behind in reading."""
        ...

    async def breathe(self) -> None:
        """Wait until it no longer is."""
        ...

    def warn(self, kind: str, message: str, *, source_id: str | None = None) -> None:
        """Add to the run's warnings, and stage a `warning` event."""
        ...
