"""What a sidecar of tomorrow may add to its messages, and a client of today has to bear. Changes nothing that is there.

Unknown fields, an unknown notification, an unknown type of event, and a request of an unknown method.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, cast

from sidecar_client.types import Json, JsonObject

RUN_EVENT: Final = "run/event"
"""As in `protocol.methods`, whose types would cost the relay most of its start."""

PREFIX: Final = "x-weather"
"""How every name begins that rough weather brings."""

REQUEST_ID: Final = "7001"
"""The id of the unknown request: a string, though it looks like a number."""


def is_weather(name: object) -> bool:
    """Whether a method, a type or a key is rough weather's."""
    return isinstance(name, str) and name.startswith(PREFIX)


def calmed(value: Json) -> Json:
    """A message that was handed on, without the fields that rough weather brought."""
    match value:
        case dict():
            fields = cast("JsonObject", value).items()
            return {name: calmed(item) for name, item in fields if not is_weather(name)}
        case list():
            return [calmed(item) for item in cast("list[Any]", value)]
        case _:
            return value


class Weather:
    """One process's weather."""

    def __init__(self) -> None:
        self._begun = False
        self._seen: dict[str, int] = defaultdict(int)
        """Session → the highest number of an event that was sent."""
        self._added: dict[str, int] = defaultdict(int)
        """Session → the ephemeral events that were added since the last durable one."""

    def around(self, message: JsonObject) -> Iterator[JsonObject]:
        """A message as it comes in rough weather, and what comes with it."""
        if message.get("method") == RUN_EVENT:
            yield from self._around_event(message)
            return
        yield _with_fields(message)
        if not self._begun and "result" in message:
            self._begun = True
            yield {"jsonrpc": "2.0", "method": f"{PREFIX}/changed", "params": {"to": "rough"}}
            yield {"jsonrpc": "2.0", "id": REQUEST_ID, "method": f"{PREFIX}/ask", "params": {"for": "an umbrella"}}

    def _around_event(self, message: JsonObject) -> Iterator[JsonObject]:
        event: JsonObject = message["params"]
        session, seq = event["sessionId"], event["seq"]
        if event.get("ephemeral"):
            event = {**event, "sub": event["sub"] + self._added[session]}
            yield _with_fields({**message, "params": event})
            return
        yield _with_fields(message)
        self._added[session] = 0
        if seq > self._seen[session] and event["type"] != "run.completed":  # after which its run has no events
            self._added[session] = 1
            kept = {key: item for key, item in event.items() if key != "prevSeq"}
            unknown = {**kept, "sub": 1, "ephemeral": True, "type": f"{PREFIX}.gust", "data": {"knots": 40}}
            yield {"jsonrpc": "2.0", "method": RUN_EVENT, "params": unknown}
        self._seen[session] = max(seq, self._seen[session])


def _with_fields(message: JsonObject) -> JsonObject:
    """A message with unknown fields, everywhere but in what is the host's own JSON."""
    added: JsonObject = {}
    for part in ("params", "result", "error"):
        if isinstance(message.get(part), dict):
            added[part] = {**message[part], PREFIX: {"wind": ["NW", 7]}}
    if message.get("method") == RUN_EVENT:
        added["params"]["data"] = {**added["params"]["data"], PREFIX: None}
    return {**message, **added, PREFIX: True}
