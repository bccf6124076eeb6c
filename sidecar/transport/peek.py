"""Reads the id from the first bytes of a message that is too large to be kept. No parser: it gives up where unsure."""

import re
from json.decoder import JSONDecoder
from typing import Any, Final, NamedTuple

HEAD_BYTES: Final = 4096
"""How much of a message is looked at."""

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INT64: Final = range(-(2**63), 2**63)
_DECODER: Final = JSONDecoder()


class Head(NamedTuple):
    """Whose message it is. Both are None where the first bytes do not say for certain."""

    request_id: int | str | None = None
    response_id: int | str | None = None


def peek(head: bytes) -> Head:
    """Find the top-level `id` in the first bytes of a JSON object, and whether it asks or answers."""
    members = _members(head.decode(errors="replace"))
    message_id = members.get("id")
    if not _is_certain(message_id):
        return Head()
    if "method" in members:
        return Head(request_id=message_id)
    if "result" in members or "error" in members:
        return Head(response_id=message_id)
    return Head()


def _is_certain(message_id: object) -> bool:
    """A string that was cut, damaged or is half of a surrogate pair cannot be echoed unchanged."""
    if isinstance(message_id, str):
        return not any(char == "\ufffd" or "\ud800" <= char <= "\udfff" for char in message_id)
    return type(message_id) is int and message_id in _INT64


def _members(text: str) -> dict[str, Any]:
    """The top-level members that stand whole in `text`; of the first that does not, the name alone."""
    members: dict[str, Any] = {}
    position = _skip_blanks(text, 0)
    separator = "{"
    while text[position : position + 1] == separator:
        position = _skip_blanks(text, position + 1)
        try:
            name, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        position = _skip_blanks(text, position)
        if not isinstance(name, str) or text[position : position + 1] != ":":
            break
        try:
            value, position = _DECODER.raw_decode(text, _skip_blanks(text, position + 1))
        except (ValueError, RecursionError):
            members.setdefault(name, None)
            break
        position = _skip_blanks(text, position)
        if text[position : position + 1] not in (",", "}"):  # a number may go on behind the cut
            break
        members[name] = value
        separator = ","
    return members


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position
