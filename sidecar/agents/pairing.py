"""Makes what a model is sent valid: every call with its one result right behind it. The one place that sees to it."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message


def paired(messages: Sequence[Message], open_at_service: Collection[str] = ()) -> list[Message]:
    """The messages, with results moved behind their calls, and without calls and results that have no partner.

    A result belongs to the last call of its id that stands before it and has none yet: a model may use an id again.

    Args:
        messages: What a model would see, oldest first.
        open_at_service: Ids of calls that the model's service keeps itself: their results need no call here.
    """
    if _is_paired(messages):
        return list(messages)
    asked, left = _matched(messages)
    found: list[Message] = []
    for index, message in enumerate(messages):
        if index in asked:
            found.extend(_with_results(message, asked[index]))
        elif message.role != "tool":
            found.append(message)
        else:
            found.extend(_of_service(message, left[index], open_at_service))
    return found


def open_calls(messages: Sequence[Message]) -> set[str]:
    """Ids of the calls that have no result."""
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            waiting -= {block.call_id for block in message.content if isinstance(block, FunctionResultBlock)}
        else:
            waiting |= {call.call_id for call in _calls(message)}
    return waiting


def _is_paired(messages: Sequence[Message]) -> bool:
    """Whether every tool message answers just the calls of the message before it, and every call is answered."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not waiting or [block.call_id for block in _results(message)] != waiting:
                return False
            waiting = []
        elif waiting:
            return False
        elif message.role == "assistant":
            for block in message.content:  # no call and no list for each message of a long history
                if isinstance(block, FunctionCallBlock):
                    waiting.append(block.call_id)
    return not waiting


def _calls(message: Message) -> list[FunctionCallBlock]:
    if message.role != "assistant":
        return []
    return [block for block in message.content if isinstance(block, FunctionCallBlock)]


def _results(message: Message) -> list[FunctionResultBlock]:
    return [block for block in message.content if isinstance(block, FunctionResultBlock)]


@dataclass(slots=True)
class _Asked:
    """A call, and its result once there is one."""

    call: FunctionCallBlock
    result: tuple[FunctionResultBlock, Message] | None = None


def _matched(messages: Sequence[Message]) -> tuple[dict[int, list[_Asked]], dict[int, list[FunctionResultBlock]]]:
    """The calls of each message that has some, and the results of each tool message that answer none of them."""
    asked: dict[int, list[_Asked]] = {}
    left: dict[int, list[FunctionResultBlock]] = {}
    waiting: dict[str, list[deque[_Asked]]] = {}  # of each id the messages with open calls, the last one at the end
    for index, message in enumerate(messages):
        if message.role == "tool":
            left[index] = [block for block in _results(message) if not _answers(block, message, waiting)]
        elif calls := [_Asked(call) for call in _calls(message)]:
            asked[index] = calls
            of_message: dict[str, deque[_Asked]] = {}
            for one in calls:
                of_message.setdefault(one.call.call_id, deque()).append(one)
            for call_id, same in of_message.items():
                waiting.setdefault(call_id, []).append(same)
    return asked, left


def _answers(block: FunctionResultBlock, message: Message, waiting: dict[str, list[deque[_Asked]]]) -> bool:
    last = waiting.get(block.call_id)
    if not last:
        return False
    last[-1].popleft().result = block, message
    if not last[-1]:
        last.pop()
    return True


def _with_results(message: Message, calls: Sequence[_Asked]) -> Iterator[Message]:
    answered = [(one.call, one.result) for one in calls if one.result is not None]
    whole = len(answered) == len(calls)
    kept = {id(call) for call, _ in answered}
    content: tuple[Block, ...] = tuple(
        block for block in message.content if not isinstance(block, FunctionCallBlock) or id(block) in kept
    )
    if content:
        yield message if whole else message.model_copy(update={"content": content})
    if answered:
        blocks = tuple(block for _, (block, _) in answered)
        first = answered[0][1][1]
        yield first if first.content == blocks else first.model_copy(update={"content": blocks})


def _of_service(
    message: Message, left: Sequence[FunctionResultBlock], open_at_service: Collection[str]
) -> Iterator[Message]:
    blocks = tuple(block for block in left if block.call_id in open_at_service)
    if blocks:
        yield message if blocks == message.content else message.model_copy(update={"content": blocks})
