"""The way to the client, as sessions see it: events, notifications, and whether it is far behind in reading."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protocol.base import JsonObject

SendEvent = Callable[[JsonObject], None]
"""Puts an event's envelope on the wire."""


@dataclass(frozen=True, slots=True)
class Outlet:
    """One client."""

    send_event: SendEvent
    congested: Callable[[], bool]
    """Whether the client is far behind in reading."""
    breathe: Callable[[], Awaitable[None]]
    """Waits until it no longer is."""
    notify: Callable[[str, JsonObject], None]
    """Sends another notification."""
    opted_out: frozenset[str] = frozenset()
    """Types of events that the client does not want."""
