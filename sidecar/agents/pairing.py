"""Makes what a model is sent valid: every call with its one result right behind it. The one place that sees to it."""

from collections import deque
from collections.abc import Collection, Sequence

from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message


def paired(messages: Sequence[Message], open_at_service: Collection[str] = ()) -> list[Message]:
    """The messages, with results moved behind their calls, and without calls and results that have no partner.

    Args:
        messages: What a model would see, oldest first.
        open_at_service: Ids of calls that the model's service keeps itself: their results need no call here.
    """
    if _is_paired(messages):
        return list(messages)
    results = _results(messages)
    found: list[Message] = []
    for message in messages:
        calls = _calls(message)
        if calls:
            found.extend(_with_results(message, calls, results))
        elif message.role != "tool":
            found.append(message)
        elif (left := _of_service(message, open_at_service)) is not None:
            found.append(left)
    return found


def _is_paired(messages: Sequence[Message]) -> bool:
    """Whether every tool message answers just the calls of the message before it, and every call is answered."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not waiting or [b.call_id for b in message.content if isinstance(b, FunctionResultBlock)] != waiting:
                return False
            waiting = []
        elif waiting:
            return False
        elif message.role == "assistant":
            waiting = [call.call_id for call in _calls(message)]
    return not waiting


def _calls(message: Message) -> list[FunctionCallBlock]:
    if message.role != "assistant":
        return []
    return [block for block in message.content if isinstance(block, FunctionCallBlock)]


def _results(messages: Sequence[Message]) -> dict[str, deque[tuple[FunctionResultBlock, Message]]]:
    """Every result by its call's id; a model may use an id again, so there may be several, in order."""
    found: dict[str, deque[tuple[FunctionResultBlock, Message]]] = {}
    for message in messages:
        if message.role == "tool":
            for block in message.content:
                if isinstance(block, FunctionResultBlock):
                    found.setdefault(block.call_id, deque()).append((block, message))
    return found


def _with_results(
    message: Message,
    calls: Sequence[FunctionCallBlock],
    results: dict[str, deque[tuple[FunctionResultBlock, Message]]],
) -> list[Message]:
    answered = {call.call_id: results[call.call_id].popleft() for call in calls if results.get(call.call_id)}
    content: tuple[Block, ...] = tuple(
        block for block in message.content if not isinstance(block, FunctionCallBlock) or block.call_id in answered
    )
    found: list[Message] = []
    if content:
        whole = len(content) == len(message.content)
        found.append(message if whole else message.model_copy(update={"content": content}))
    if answered:
        blocks = tuple(block for block, _ in answered.values())
        first = next(iter(answered.values()))[1]
        found.append(first if first.content == blocks else first.model_copy(update={"content": blocks}))
    return found


def _of_service(message: Message, open_at_service: Collection[str]) -> Message | None:
    blocks = tuple(
        block
        for block in message.content
        if isinstance(block, FunctionResultBlock) and block.call_id in open_at_service
    )
    return message.model_copy(update={"content": blocks}) if blocks else None
