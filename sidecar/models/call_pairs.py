"""The calls in a request's messages: their ids, and that each has its result. It knows no wire format."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from protocol.messages import FunctionCallBlock, Message


class UnpairedCallsError(RuntimeError):
    """A request would hold a call without its result, or a result without its call: a fault of ours."""


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a request: calls that are made together, one result, or (neither) anything else."""

    calls: Sequence[str] = ()
    """Call ids."""
    result: str | None = None
    """The id of the call that it answers."""


def call_ids(messages: Iterable[Message]) -> frozenset[str]:
    """The ids of all calls in the messages."""
    return frozenset(
        block.call_id for message in messages for block in message.content if isinstance(block, FunctionCallBlock)
    )


def check_pairs(steps: Iterable[Step], *, calls_elsewhere: bool = False) -> None:
    """Hold that every call is answered right after it, once, and that every result has its call.

    Args:
        steps: the request, in order.
        calls_elsewhere: the request goes on from what the service keeps: a result's call may be there.

    Raises:
        UnpairedCallsError: they do not.
    """
    pending: set[str] = set()
    answered: set[str] = set()
    for step in steps:
        if step.result is not None:
            if step.result not in pending and (step.result in answered or not calls_elsewhere):
                raise UnpairedCallsError("a tool result without its call")
            pending.discard(step.result)
            answered.add(step.result)
            continue
        if pending:
            raise UnpairedCallsError("a tool call without its result")
        pending = set(step.calls)
        if len(pending) != len(step.calls):
            raise UnpairedCallsError("two tool calls of one message share an id")
    if pending:
        raise UnpairedCallsError("a tool call without its result")
