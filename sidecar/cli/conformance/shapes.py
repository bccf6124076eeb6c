"""What form a message has to have so that the rules can read it, and whether a record kept all that they need of it.

A record has `"<any>"` in place of what was too long: that is taken as right, wherever it stands.
"""

from typing import Any, Final, cast

from protocol.base import Json, JsonObject
from protocol.methods import CANCEL_REQUEST, RUN_EVENT

from .messages import is_id
from .placeholders import ANY

_NAMES: Final = ("sessionId", "runId", "type")
"""Members of params that say what a message is about."""


def members(value: Json) -> JsonObject:
    """The members of an object; none where it is something else."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def text(value: Json) -> str:
    """A text; empty where it is something else."""
    return value if isinstance(value, str) else ""


def number(value: Json) -> int | None:
    """An integer; None where it is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def hides(message: JsonObject) -> bool:
    """Whether something that the rules need of it was too long for the record."""
    params = message.get("params")
    hidden = ANY in (message.get("id"), message.get("method"), params)
    return hidden or any(members(params).get(name) == ANY for name in _NAMES)


def fault_of(message: Json) -> str | None:
    """What keeps a message of the sidecar's from being read; None where nothing does."""
    if not isinstance(message, dict):
        return "a message is an object"
    whole = members(message)
    return _fault_of_call(whole) if "method" in whole else _fault_of_answer(whole)


def _fault_of_call(message: JsonObject) -> str | None:
    method, params = message["method"], message.get("params", {})
    if not isinstance(method, str):
        return "a method is a string"
    if "id" in message:
        return None if is_id(message["id"]) else "the id of a request is a string or an integer"
    if params == ANY:
        return None
    if method == CANCEL_REQUEST.name and not is_id(members(params).get("id")):
        return f"the params of {method!r} have the id of a request"
    if method == RUN_EVENT:
        return _fault_of_event(members(params))
    return None


def _fault_of_event(event: JsonObject) -> str | None:
    if not isinstance(event.get("sessionId"), str) or not isinstance(event.get("type"), str):
        return "an event has a 'sessionId' and a 'type'"
    if not isinstance(event.get("runId", ""), str):
        return "the 'runId' of an event is a string"
    before = event.get("prevSeq")
    if number(event.get("seq")) is None or (before is not None and number(before) is None):
        return "an event is numbered: 'seq', and 'prevSeq' if it has one, are integers"
    return None


def _fault_of_answer(message: JsonObject) -> str | None:
    request_id: Any = message.get("id", ...)
    if not (request_id is None or is_id(request_id)):
        return "an answer has the id of a request, or null"
    if len(message.keys() & {"result", "error"}) != 1:
        return "a message has a method, or either a result or an error"
    error = message.get("error", ANY)
    return None if error == ANY or number(members(error).get("code")) is not None else "an error has a code"
