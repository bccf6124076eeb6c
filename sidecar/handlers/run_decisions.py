"""Approvals in a run's input: `approvalResponse` blocks, each the answer to a recorded request."""

from collections.abc import Sequence

from protocol.messages import ApprovalResponseBlock, Message
from sidecar.errors import InvalidParams
from sidecar.sessions.approval_options import read_response
from sidecar.sessions.approvals import Held, Question, SessionApprovals
from sidecar.sessions.deciding import Deciding


def without_decisions(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The input without its approvals."""
    kept: list[Message] = []
    for message in messages:
        rest = tuple(block for block in message.content if not isinstance(block, ApprovalResponseBlock))
        if len(rest) == len(message.content):
            kept.append(message)
        elif rest:
            kept.append(message.model_copy(update={"content": rest}))
    return tuple(kept)


def told_decisions(approvals: SessionApprovals, messages: Sequence[Message]) -> tuple[Held | None, Sequence[Deciding]]:
    """The approvals of the input: what holds the calls that they are about, and what is new of them.

    One that is stored already, and not acted on, may come again.

    Raises:
        InvalidParams: one answers no open request of this session, two answer one, or they are about the calls of more
            than one run; nothing is decided.
    """
    told: dict[str, Deciding | None] = {}
    about: Held | None = None
    for index, message in enumerate(messages):
        for place, block in enumerate(message.content):
            if not isinstance(block, ApprovalResponseBlock):
                continue
            found = approvals.find(block.request_id) if message.role == "user" else None
            if found is None or block.request_id in told or _is_taken(*found, block):
                path = f"input.{index}.content.{place}"
                fault = {"path": path, "message": "no open request of this session waits for this answer"}
                raise InvalidParams("run.input holds an approval that nothing asked for", [fault])
            held, question = found
            if about not in (None, held):
                fault = {"path": f"input.{index}.content.{place}", "message": "it is about the calls of another run"}
                raise InvalidParams("answer the calls of one run at a time, each in a run of its own", [fault])
            about = held
            is_new = question.decision is None
            told[block.request_id] = Deciding(held, block.request_id, read_response(block)) if is_new else None
    return about, [one for one in told.values() if one is not None]


def _is_taken(held: Held, question: Question, block: ApprovalResponseBlock) -> bool:
    """Whether a run of this process waits for it (`resolveRequest` is for that), or it was decided otherwise."""
    if held.taken_by is not None:
        return True
    is_stored = question.decision == ("approved" if block.approved else "denied") and not held.storing
    return question.decision is not None and not is_stored
