"""Puts tool calls together from a stream's fragments, trusting no field that endpoints get wrong. No I/O.

What goes wrong in the wild: one index for all calls, no index, no id after the first fragment, a new id on every
fragment, no id at all, ids used before, arguments that are an object, or no JSON. So:

- a fragment with a name opens a call, unless it belongs to one that is open: same id, or no id and an open call there;
- any other fragment goes to the call last opened at its index; to the last opened one if there is none, or if that
  one's arguments are whole already.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

from protocol.messages import FunctionCallBlock

from .call_blocks import CallBlocks
from .json_text import parse_object


@dataclass(slots=True)
class _Open:
    call_id: str
    index: int | None
    name: str = ""
    parts: list[str] = field(default_factory=list[str])

    @property
    def is_whole(self) -> bool:
        text = "".join(self.parts)
        return bool(text.strip()) and parse_object(text) is not None


class CallAssembly:
    """The calls of one answer, in the order in which they were opened."""

    def __init__(self, taken_ids: Collection[str] = ()) -> None:
        """`taken_ids`: ids of the conversation's earlier calls; a call that repeats one gets an id of ours."""
        self._calls: list[_Open] = []
        self._blocks = CallBlocks(taken_ids)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, fragments: Any) -> None:
        """Take the `tool_calls` of one delta; anything that is no fragment is passed over."""
        if isinstance(fragments, list):
            for fragment in cast(list[Any], fragments):
                if isinstance(fragment, dict):
                    self._add(cast(dict[str, Any], fragment))

    def finish(self) -> list[FunctionCallBlock]:
        """The calls, whole.

        Raises:
            ValueError: a call has no name.
        """
        return [self._blocks.make(call.call_id, call.name, "".join(call.parts)) for call in self._calls]

    def _add(self, fragment: dict[str, Any]) -> None:
        raw = fragment.get("function")
        function = cast(dict[str, Any], raw) if isinstance(raw, dict) else {}
        call_id, name, index = _text(fragment.get("id")), _text(function.get("name")), fragment.get("index")
        index = index if isinstance(index, int) else None
        call = self._target(call_id, name, index)
        if call is None:
            call = _Open(call_id, index)
            self._calls.append(call)
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.parts.append(arguments)
        elif isinstance(arguments, dict | list):
            call.parts.append(json.dumps(arguments))

    def _target(self, call_id: str, name: str, index: int | None) -> _Open | None:
        """The open call that a fragment belongs to; `None` if it opens one."""
        if not self._calls:
            return None
        there = next((call for call in reversed(self._calls) if call.index == index), None)
        if call_id:
            same = next((call for call in self._calls if call.call_id == call_id), None)
            if same is not None and (same.index == index or not name):
                return same
        if name:
            return there if there is not None and self._goes_on(there, call_id, name) else None
        last = self._calls[-1]
        if call_id and there is None:
            return None
        return there if there is not None and (there is last or not there.is_whole) else last

    @staticmethod
    def _goes_on(call: _Open, call_id: str, name: str) -> bool:
        """Whether a named fragment at this call's index continues it: the name comes late, or is said again."""
        return not call.name or (not call_id and call.name == name and not call.is_whole)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
