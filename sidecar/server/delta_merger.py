"""Joins text deltas while the client is behind in reading: fewer, longer events, the same text in the same order."""

from collections.abc import Callable
from typing import Final

from protocol.base import JsonObject

_MERGEABLE: Final = frozenset({"message.delta", "reasoning.delta"})


class DeltaMerger:
    """Stands before the wire. Below the mark it passes every event on at once.

    Above the mark a delta is held back, and the next one of the same message is added to it: its `sub` and time are
    the last one's. Whatever else comes, for any session, sends what is held first, so that order never changes. More
    than the mark is not held: whoever produces it has to see that the client is behind.
    """

    def __init__(
        self,
        send: Callable[[JsonObject], None],
        queued_bytes: Callable[[], int],
        merge_above: int,
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """Make one.

        Args:
            send: Puts an envelope on the wire.
            queued_bytes: How much the client has not taken yet.
            merge_above: From how many queued bytes on deltas are held back; at most so many characters are.
            later: Calls a function soon: what is held must not wait for the next event for ever.
        """
        self._send = send
        self._queued_bytes = queued_bytes
        self._merge_above = merge_above
        self._later = later
        self._held: JsonObject | None = None
        self._texts: list[str] = []
        self._characters = 0

    def send(self, envelope: JsonObject) -> None:
        """Send an event, or hold it back for a moment."""
        held = self._held
        if envelope["type"] not in _MERGEABLE:
            self.flush()
            self._send(envelope)
        elif held is not None and _same_message(held, envelope):
            held["sub"], held["time"] = envelope["sub"], envelope["time"]
            self._add(envelope["data"]["text"])
        else:
            self.flush()
            if self._queued_bytes() > self._merge_above:
                self._hold(envelope)
            else:
                self._send(envelope)

    def flush(self) -> None:
        """Send what is held."""
        held, self._held = self._held, None
        if held is not None:
            held["data"] = {**held["data"], "text": "".join(self._texts)}
            self._texts, self._characters = [], 0
            self._send(held)

    def _hold(self, envelope: JsonObject) -> None:
        self._held = dict(envelope)
        self._later(self.flush)
        self._add(envelope["data"]["text"])

    def _add(self, text: str) -> None:
        self._texts.append(text)
        self._characters += len(text)
        if self._characters > self._merge_above:
            self.flush()


def _same_message(held: JsonObject, envelope: JsonObject) -> bool:
    """Whether two deltas belong together; a durable event in between has changed `seq`."""
    return (
        held["type"] == envelope["type"]
        and held["seq"] == envelope["seq"]
        and held["sessionId"] == envelope["sessionId"]
        and held["data"]["messageId"] == envelope["data"]["messageId"]
        and held["data"].get("contentIndex") == envelope["data"].get("contentIndex")
    )
