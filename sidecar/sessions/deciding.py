"""Stores decisions about calls whose run has ended with the questions. It goes on with nothing."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from protocol.base import JsonObject
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.stores.base import StoreError

from .approval_options import Answer
from .approvals import Held
from .open_session import OpenSession
from .rule_keeping import rule_of
from .storage_errors import storage_error


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
        rule = rule_of(held.questions[request_id], answer, session.record, session.plan.name)
        if rule is not None:
            await session.keep_rule(rule)
