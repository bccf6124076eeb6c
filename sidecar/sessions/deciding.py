"""Stores a decision about a call whose run has ended with the question. It goes on with nothing."""

import asyncio

from protocol.base import JsonObject
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.stores.base import StoreError

from .approval_options import Answer
from .approvals import Held
from .open_session import OpenSession
from .rule_keeping import rule_of
from .storage_errors import storage_error


async def decide(session: OpenSession, held: Held, request_id: str, answer: Answer) -> None:
    """Store what a person has decided, once, and the rule that it makes.

    Raises:
        SidecarError: it could not be stored: nothing is decided.
    """
    before = held.questions[request_id]
    question = held.questions[request_id] = before.decided(answer)  # at once: a second answer finds it
    data: JsonObject = {"requestId": request_id, "outcome": answer.outcome, "by": "client"}
    reached("approval.decide.before")
    try:
        await asyncio.shield(
            session.log.append([Draft("request.resolved", data, requests=(question.note(),))], keep=False)
        )
    except StoreError as error:
        held.questions[request_id] = before
        raise storage_error(error, session.session_id) from error
    session.requests.close(request_id)
    reached("approval.decide.after")
    rule = rule_of(question, answer, session.record, session.plan.name)
    if rule is not None:
        await session.keep_rule(rule)
