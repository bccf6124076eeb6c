"""What JSON-RPC says of a message, and how one is shown in a finding. Knows no method."""

import json
from typing import Final, TypeGuard

from protocol.base import Json

_LONGEST: Final = 200


def is_id(value: Json) -> TypeGuard[str | int]:
    """Whether it can be the id of a request."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def short(value: Json) -> str:
    """A message as text, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
