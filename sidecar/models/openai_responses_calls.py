"""Puts the function calls of a Responses stream together from its events. No I/O.

An event belongs to the call with its item's id, else to the one at its output index: services are known to change the
ids between two events of one item, or to count every item as the first. What a `done` event says counts more than the
deltas before it.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from protocol.messages import FunctionCallBlock

from .call_blocks import CallBlocks


@dataclass(slots=True)
class _Open:
    item_id: str
    index: int | None
    call_id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list[str])
    has_arguments: bool = False
    """They were told whole."""
    is_closed: bool = False
    """Its item is done."""


class ResponseCalls:
    """The calls of one answer, in the order in which they were opened."""

    def __init__(self, taken_ids: Collection[str] = ()) -> None:
        """`taken_ids`: ids of the conversation's earlier calls; a call that repeats one gets an id of ours."""
        self._calls: list[_Open] = []
        self._blocks = CallBlocks(taken_ids)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add_item(self, item: dict[str, Any], index: Any, *, is_whole: bool) -> None:
        """Take a `function_call` item: announced, or whole."""
        call_id, item_id, index = _text(item.get("call_id")), _text(item.get("id")), _index(index)
        call = self._same_item(call_id, item_id, index)
        if call is None:
            call = _Open(item_id, index)
            self._calls.append(call)
        call.call_id = call.call_id or call_id
        call.name = call.name or _text(item.get("name"))
        self._take(call, item.get("arguments"), is_whole=is_whole)
        call.is_closed = call.is_closed or is_whole

    def add_delta(self, event: dict[str, Any]) -> None:
        """Take some more of a call's arguments."""
        call, delta = self._call_of(event), event.get("delta")
        if call is not None and not call.has_arguments and isinstance(delta, str):
            call.parts.append(delta)

    def add_arguments(self, event: dict[str, Any]) -> None:
        """Take a call's whole arguments."""
        if (call := self._call_of(event)) is not None:
            call.name = call.name or _text(event.get("name"))
            self._take(call, event.get("arguments"), is_whole=True)

    def finish(self) -> list[FunctionCallBlock]:
        """The calls, whole.

        Raises:
            ValueError: a call has no name.
        """
        return [self._blocks.make(call.call_id, call.name, "".join(call.parts)) for call in self._calls]

    @staticmethod
    def _take(call: _Open, arguments: Any, *, is_whole: bool) -> None:
        text = json.dumps(arguments) if isinstance(arguments, dict | list) else _text(arguments)
        if text or not call.parts:
            call.parts = [text]
        call.has_arguments = call.has_arguments or is_whole

    def _same_item(self, call_id: str, item_id: str, index: int | None) -> _Open | None:
        """The call that an item was announced as; the surest sign first."""
        signs: tuple[Callable[[_Open], bool], ...] = (
            lambda call: bool(item_id) and call.item_id == item_id,
            lambda call: bool(call_id) and (call.call_id, call.index) == (call_id, index),
            lambda call: not call.is_closed and call.index == index and not (call_id and call.call_id),
            lambda call: not call.is_closed and bool(call_id) and call.call_id == call_id,
        )
        return next((call for sign in signs for call in reversed(self._calls) if sign(call)), None)

    def _call_of(self, event: dict[str, Any]) -> _Open | None:
        """The call that an event tells more of; the last one where its item is not known."""
        item_id, index = _text(event.get("item_id")), _index(event.get("output_index"))
        newest = self._calls[::-1]
        same = next((call for call in newest if item_id and call.item_id == item_id), None)
        there = next((call for call in newest if call.index == index), None)
        return same or there or next(iter(newest), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    return value if isinstance(value, int) else None
