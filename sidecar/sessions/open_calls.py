"""Calls that a cut run left without a result: each gets one, so that the transcript stays valid. Runs nothing."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from sidecar.agents.loop import completed_draft
from sidecar.agents.output import new_message_id
from sidecar.agents.sink import CallNote, Draft

from .ids import now

Outcome = Literal["cancelled", "unknown"]
"""What became of a call that was begun and did not end."""

_BEGUN: Final[dict[Outcome, str]] = {
    "cancelled": "Cancelled: the run was stopped while this call was under way; what it has done so far is not known.",
    "unknown": "Outcome unknown: the process ended while this call was under way. It was not made again.",
}
_NOT_BEGUN: Final[dict[Outcome, str]] = {
    "cancelled": "Cancelled: the run was stopped before this call was made.",
    "unknown": "Not run: the process ended before this call was made.",
}


class Closing(NamedTuple):
    """What closes the calls of one run."""

    message: Message
    """All the results, to stand right behind the calls."""
    drafts: tuple[Draft, ...]
    """The events that tell of it, and store it."""
    call_ids: tuple[str, ...]
    """Calls that got a result which is not their tool's."""


def close_calls(
    messages: Sequence[Message], outcome: Outcome, begun: Mapping[str, FunctionResultBlock | None]
) -> Closing | None:
    """One result for each call that has none; `None` if every call has its result.

    Args:
        messages: One run's part of the transcript, oldest first.
        outcome: What became of the calls that were begun.
        begun: Calls that were begun, by their ids, with their results where they have ended.
    """
    asked: Message | None = None
    calls: dict[str, FunctionCallBlock] = {}  # a model may use an id again once its call is answered
    for message in messages:
        for block in message.content:
            if isinstance(block, FunctionCallBlock):
                asked, calls[block.call_id] = message, block
            elif isinstance(block, FunctionResultBlock):
                calls.pop(block.call_id, None)
    if asked is None or not calls:
        return None
    results = {call_id: begun.get(call_id) or _synthetic(call_id, outcome, begun) for call_id in calls}
    closing = Message(
        message_id=new_message_id(),
        role="tool",
        content=tuple(results.values()),
        source=asked.source,
        run_id=asked.run_id,
        created_at=now(),
    )
    synthetic = [call for call in calls.values() if not begun.get(call.call_id)]
    events = (_completed(call, results[call.call_id], outcome, begun) for call in synthetic)
    notes = tuple(CallNote(call_id, calls[call_id].name, open=False) for call_id in begun if call_id in calls)
    return Closing(closing, (*events, completed_draft(closing, notes)), tuple(call.call_id for call in synthetic))


def _synthetic(call_id: str, outcome: Outcome, begun: Mapping[str, FunctionResultBlock | None]) -> FunctionResultBlock:
    text = (_BEGUN if call_id in begun else _NOT_BEGUN)[outcome]
    return FunctionResultBlock(call_id=call_id, content=(TextBlock(text=text),), is_error=True)


def _completed(
    call: FunctionCallBlock,
    result: FunctionResultBlock,
    outcome: Outcome,
    begun: Mapping[str, FunctionResultBlock | None],
) -> Draft:
    status = outcome if call.call_id in begun or outcome == "cancelled" else "notRun"
    content = [block.wire() for block in result.content]
    data = {"callId": call.call_id, "name": call.name, "status": status, "content": content, "durationMs": 0}
    return Draft("tool.completed", data)
