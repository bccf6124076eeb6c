"""Makes what a model is sent valid: every call with its one result right behind it. The one place that sees to it."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

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
    answers = _Answers(open_at_service)
    for message in messages:
        answers.take(message)
    found: list[Message] = []
    for message in messages:
        calls = _calls(message)
        if calls:
            found.extend(_with_results(message, answers.of.get(id(message), ())))
        elif message.role != "tool":
            found.append(message)
        elif message in answers.of_service:
            found.append(answers.of_service[message])
    return found
