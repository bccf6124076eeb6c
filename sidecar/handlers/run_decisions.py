"""Approvals in a run's input: `approvalResponse` blocks, each the answer to a recorded request."""

from collections.abc import Sequence

from protocol.messages import ApprovalResponseBlock, Message
from sidecar.errors import InvalidParams
from sidecar.sessions.approval_options import Answer, read_response
from sidecar.sessions.approvals import Held, SessionApprovals

Told = tuple[Held, str, Answer]
"""What holds the question, its id, and the answer."""


def told_decisions(
    approvals: SessionApprovals, messages: Sequence[Message]
) -> tuple[tuple[Message, ...], Sequence[Told]]:
    """The input without its approvals, and those.

    Raises:
        InvalidParams: one answers no open request of this session, or two answer one; nothing is decided.
    """
    kept: list[Message] = []
    told: dict[str, Told] = {}
    for index, message in enumerate(messages):
        rest = tuple(block for block in message.content if not isinstance(block, ApprovalResponseBlock))
        for place, block in enumerate(message.content):
            if not isinstance(block, ApprovalResponseBlock):
                continue
            found = approvals.find(block.request_id) if message.role == "user" else None
            if found is None or found[1].decision is not None or block.request_id in told or _is_live(found[0]):
                path = f"input.{index}.content.{place}"
                fault = {"path": path, "message": "no open request of this session waits for this answer"}
                raise InvalidParams("run.input holds an approval that nothing asked for", [fault])
            told[block.request_id] = (found[0], block.request_id, read_response(block))
        if len(rest) == len(message.content):
            kept.append(message)
        elif rest:
            kept.append(message.model_copy(update={"content": rest}))
    return tuple(kept), tuple(told.values())


def _is_live(held: Held) -> bool:
    """A run waits for it in this process: `resolveRequest` is for that."""
    return held.taken_by is not None
