"""A session as providers, tools and middleware see it: an id and a bag of state. It stores nothing by itself."""

from threading import RLock
from typing import Any, cast

from protocol.base import JsonObject

from .json_value import plain_json

State = dict[str, Any]
"""A provider's own corner of the state bag: plain JSON values."""


class Session:
    """One conversation's identity and its shared state.

    The state is one flat JSON object, shared by the host, tools, middleware and providers. What a run changes in it
    is stored with the run, or dropped with it. Tools may write it from their threads: what is read and written in one
    step there is done under `lock`.
    """

    def __init__(
        self,
        session_id: str,
        *,
        state: JsonObject | None = None,
        service_session_id: str | None = None,
        resends_history: bool = False,
    ) -> None:
        self.session_id = session_id
        self.service_session_id = service_session_id
        self.resends_history = resends_history
        """The model's service has not seen its turns, although one kept them: they are sent along once."""
        self.state: JsonObject = {} if state is None else state
        self.lock = RLock()
        """Held for a moment and never across an `await`; whoever holds it may take it again."""

    def snapshot(self) -> JsonObject:
        """The state bag as it is now: its values are shared, the bag is not. Writers without the lock do no harm."""
        with self.lock:
            return self.state.copy()  # one step of the interpreter's own: no other thread gets in between

    def state_of(self, key: str) -> State:
        """A provider's own object, made empty at first use."""
        value: object = self.state.setdefault(key, {})
        if not isinstance(value, dict):
            raise TypeError(f"state key {key!r} holds {type(value).__name__}, not an object")
        return cast("State", value)

    def to_dict(self) -> JsonObject:
        """The session as plain JSON, sharing nothing with it. Objects with a `type` key are data like any other.

        Raises:
            ValueError: the state holds something that is no JSON; the message names where.
        """
        return {
            "type": "session",
            "session_id": self.session_id,
            "service_session_id": self.service_session_id,
            "state": plain_json(self.snapshot(), "state"),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Session":
        """The session that `to_dict` described."""
        return cls(
            data["session_id"],
            state=plain_json(data.get("state") or {}, "state"),
            service_session_id=data.get("service_session_id"),
        )
