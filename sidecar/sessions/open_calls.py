"""Calls that a cut run left without a result: each gets one, so that the transcript stays valid. Runs nothing."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from sidecar.agents.output import new_message_id
from sidecar.agents.runner import completed_draft
from sidecar.agents.sink import Draft

from .ids import now

Outcome = Literal["cancelled", "notRun"]

_TEXTS: Final[dict[Outcome, str]] = {
    "cancelled": "Cancelled: the run was stopped before this call was made.",
    "notRun": "Not run: the process ended before this call was made.",
}


class Closing(NamedTuple):
    """What closes the calls of one run."""

    message: Message
    """All the results, to stand right behind the calls."""
    drafts: tuple[Draft, ...]
    """The events that tell of it, and store it."""
    call_ids: tuple[str, ...]


def close_calls(messages: Sequence[Message], outcome: Outcome) -> Closing | None:
    """One result for each call that has none; `None` if every call has its result.

    Args:
        messages: One run's part of the transcript, oldest first.
        outcome: What became of the calls.
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
    content = (TextBlock(text=_TEXTS[outcome]),)
    results = tuple(FunctionResultBlock(call_id=call_id, content=content, is_error=True) for call_id in calls)
    closing = Message(
        message_id=new_message_id(),
        role="tool",
        content=results,
        source=asked.source,
        run_id=asked.run_id,
        created_at=now(),
    )
    told = {"status": outcome, "content": [block.wire() for block in content], "durationMs": 0}
    events = (Draft("tool.completed", {"callId": call.call_id, "name": call.name, **told}) for call in calls.values())
    return Closing(closing, (*events, completed_draft(closing)), tuple(calls))
