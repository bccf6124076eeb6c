"""Where a run's events go: to the client, or to the command inside the process that began the run."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from protocol.base import JsonObject

from .envelope import notification

Watcher = Callable[[JsonObject], None]
"""Takes the envelope of an event; it is not the watcher's to keep or change."""


class EventRoutes:
    """The one way out for events."""

    def __init__(self, send: Callable[[bytes], None], *, is_host: bool) -> None:
        """Watch nothing yet.

        Args:
            send: takes the body of a message to the client.
            is_host: The client speaks our protocol: it gets every event. A plain editor gets none of the runs that
                its commands began: it would warn its user of each.
        """
        self._send = send
        self._is_host = is_host
        self._watchers: dict[tuple[str, str], Watcher] = {}

    def send(self, envelope: JsonObject) -> None:
        """Pass an event on."""
        watcher = self._find(envelope) if self._watchers else None
        if watcher is not None:
            watcher(envelope)
        if watcher is None or self._is_host:
            self._send(notification("run/event", envelope))

    @contextmanager
    def watched(self, session_id: str, run_id: str, watcher: Watcher) -> Generator[None]:
        """Give a run's events to `watcher`, and those of the runs that it delegates to."""
        self._watchers[session_id, run_id] = watcher
        try:
            yield
        finally:
            del self._watchers[session_id, run_id]

    def _find(self, envelope: JsonObject) -> Watcher | None:
        session_id = envelope["sessionId"]
        if "parentRunId" in envelope:  # a session has one run that is not delegated
            return next((watcher for (session, _), watcher in self._watchers.items() if session == session_id), None)
        return self._watchers.get((session_id, envelope.get("runId", "")))
