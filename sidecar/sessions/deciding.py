"""Stores decisions about calls whose run has ended with the questions. It goes on with nothing."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from protocol.base import JsonObject
from protocol.messages import Message
from sidecar.agents.sink import Draft, RequestNote
from sidecar.crash_points import reached
from sidecar.stores.base import StoreError

from .approval_options import Answer
from .approvals import Held, going_on
from .envelopes import request_rows
from .open_calls import close_calls
from .open_session import OpenSession
from .rule_keeping import rule_of
from .storage_errors import storage_error


class Withdrawn(NamedTuple):
    """What ends decided calls that nobody is to make any more."""

    drafts: tuple[Draft, ...]
    closing: tuple[RequestNote, ...]
    """What drops the records of the questions; to be stored with those."""
    messages: tuple[Message, ...]
    """What the transcript has more by that."""


async def withdrawn(session: OpenSession, held: Held) -> Withdrawn:
    """Decided calls whose run was cancelled before it began: each gets a result that says so.

    Raises:
        StoreError: the transcript could not be read.
    """
    found = going_on(held, await session.transcript.load(session.session_id))
    closing = close_calls(found.said, "cancelled", {}) if found is not None else None
    if closing is None:
        return Withdrawn((), held.closing(), ())
    return Withdrawn(closing.drafts, held.closing(), (closing.message,))


async def reject_after_all(session: OpenSession, held: Held, request_id: str, answer: Answer) -> None:
    """Let a call that was allowed, and is not begun, be rejected: to take consent back is always possible.

    Raises:
        SidecarError: it could not be stored: the decision stands.
    """
    before = held.questions[request_id]
    question = held.questions[request_id] = before.decided(answer)
    held.storing += 1
    try:
        await asyncio.shield(session.log.append([], request_rows([question.note()]), keep=False))
    except StoreError as error:
        held.questions[request_id] = before
        raise storage_error(error, session.session_id) from error
    finally:
        held.storing -= 1


class Deciding(NamedTuple):
    """One decision."""

    held: Held
    request_id: str
    answer: Answer


async def decide(session: OpenSession, decisions: Sequence[Deciding]) -> None:
    """Store what a person has decided, once and together, and the rules that it makes.

    Raises:
        SidecarError: it could not be stored: nothing is decided.
    """
    before = [(held, request_id, held.questions[request_id]) for held, request_id, _ in decisions]
    drafts: list[Draft] = []
    for held, request_id, answer in decisions:
        question = held.questions[request_id] = held.questions[request_id].decided(answer)  # a second answer finds it
        held.storing += 1
        data: JsonObject = {"requestId": request_id, "outcome": answer.outcome, "by": "client"}
        drafts.append(Draft("request.resolved", data, requests=(question.note(),)))
    reached("approval.decide.before")
    try:
        await asyncio.shield(session.log.append(drafts, keep=False))
    except StoreError as error:
        for held, request_id, question in before:
            held.questions[request_id] = question
        raise storage_error(error, session.session_id) from error
    finally:
        for held, _, _ in decisions:
            held.storing -= 1
    for _, request_id, _ in decisions:
        session.requests.close(request_id)
    reached("approval.decide.after")
    for held, request_id, answer in decisions:
        rule = rule_of(held.questions[request_id], answer, session.record, session.rule_agent(session.plan.name))
        if rule is not None:
            await session.keep_rule(rule)
