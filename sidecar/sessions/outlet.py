"""The way to the client, as sessions see it: events, notifications, questions, and whether it is far behind."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from protocol.base import Json, JsonObject

from .host_features import NO_FEATURES, HostFeatures

SendEvent = Callable[[JsonObject], None]
"""Puts an event's envelope on the wire."""


class AskFailed(Exception):
    """The client answered a request with an error, or cannot answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The client's; 0 where it has gone."""

    @property
    def has_gone(self) -> bool:
        """Whether nothing will be answered any more."""
        return self.code == 0


class Ask(Protocol):
    """Sends a request to the client, and waits."""

    async def __call__(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout: float | None = None,
        answered: Callable[[], None] | None = None,
    ) -> Json:
        """The answer's result. Whoever stops waiting takes the request back.

        Args:
            method: What is asked.
            params: As they go on the wire.
            timeout: Seconds; `None`: as long as the client lives.
            answered: Called at once when an answer is read, before anything that the client has sent after it.

        Raises:
            AskFailed: the client answered with an error, or has gone.
            TimeoutError: it has not answered within so many seconds.
        """
        ...


async def nobody(
    method: str, params: JsonObject, *, timeout: float | None = None, answered: Callable[[], None] | None = None
) -> Json:
    """Asks nobody: what a client that can answer nothing says.

    Raises:
        AskFailed: always.
    """
    del params, timeout, answered
    raise AskFailed(0, f"nobody can be asked {method}")


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
    ask: Ask = nobody
    host: HostFeatures = NO_FEATURES
    """What it can be asked."""
