"""What a run tells upward while it works: events, and messages to store with them. A Protocol; stores nothing."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from protocol.base import JsonObject
from protocol.messages import FunctionResultBlock, Message, Source


@dataclass(frozen=True, slots=True)
class CallNote:
    """A tool call that was begun, kept until its result stands in the transcript."""

    call_id: str
    name: str
    result: FunctionResultBlock | None = None
    """`None`: it was begun, and what became of it is not known."""
    open: bool = True
    """False: the transcript has the result now."""


@dataclass(frozen=True, slots=True)
class RequestNote:
    """A request to the host, kept until it is answered or given up."""

    request_id: str
    body: JsonObject | None = None
    """`None`: it is open no longer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A durable event before it has a number."""

    type: str
    data: JsonObject
    """Without what `message_id` refers to."""
    message: Message | None = None
    """A message that is stored with the event and whose content belongs into it."""
    source: Source | None = None
    calls: tuple[CallNote, ...] = ()
    """Tool calls whose record is stored with the event."""
    requests: tuple[RequestNote, ...] = ()
    """Requests to the host whose record is stored with the event."""
    in_history: bool = True
    """Whether the message belongs into the transcript."""
    stored: "asyncio.Future[Exception | None] | None" = field(default=None, compare=False)
    """Is told once what kept the event from being stored, or `None` when it is; for whoever may answer only then."""


class RunSink(Protocol):
    """Takes a run's events. `emit` is the only word that goes upward."""

    def ephemeral(self, event: str, data: JsonObject) -> None:
        """Send at once; not stored, not replayed."""
        ...

    def stage(self, draft: Draft) -> None:
        """Keep a durable event for the next `commit`."""
        ...

    async def commit(self, *drafts: Draft) -> bool:
        """Store what was staged and these, then send them; whether they are stored.

        A storage failure is kept for a later try.
        """
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
