"""Stores decisions about calls whose run has ended with the questions, each in its turn. It goes on with nothing."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Literal, NamedTuple

from protocol.base import JsonObject
from protocol.messages import Message
from sidecar.agents.sink import Draft, RequestNote
from sidecar.crash_points import reached
from sidecar.stores.base import Put, StoreError

from .approval_options import Answer
from .approvals import Held, Question, going_on
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


class Deciding(NamedTuple):
    """One decision."""

    held: Held
    request_id: str
    answer: Answer


async def resolve(session: OpenSession, decided: Deciding) -> Literal["resolved", "alreadyResolved"]:
    """Store a first decision, or that a call that was allowed, and is not begun, is rejected after all.

    To take consent back is always possible. A decision that is on its way into the store is waited for: it may fail.

    Raises:
        SidecarError: it could not be stored: what was decided before stands.
    """
    held, request_id, answer = decided
    while (earlier := held.under_way.get(request_id)) is not None:
        doubts = held.questions[request_id].decision == "approved" and not answer.approved
        held.storing += doubts  # nobody goes on with the call before this is heard
        try:
            await earlier.wait()
        finally:
            held.storing -= doubts
    before = held.questions[request_id].decision
    if before is None:
        await decide(session, [decided])
        return "resolved"
    if before == "denied" or answer.approved or held.taken_by is not None or held not in session.approvals:
        return "alreadyResolved"
    said = _say([decided])
    await _to_its_end(said, _store(session, said, [], request_rows([held.questions[request_id].note()])))
    return "resolved"


async def decide(session: OpenSession, decisions: Sequence[Deciding]) -> None:
    """Store what a person has decided, once and together, and the rules that it makes.

    Raises:
        SidecarError: it could not be stored: nothing is decided.
    """
    said = _say(decisions)
    await _to_its_end(said, _decide(session, decisions, said))


async def _decide(session: OpenSession, decisions: Sequence[Deciding], said: "_Said") -> None:
    drafts: list[Draft] = []
    for held, request_id, answer in decisions:
        data: JsonObject = {"requestId": request_id, "outcome": answer.outcome, "by": "client"}
        drafts.append(Draft("request.resolved", data, requests=(held.questions[request_id].note(),)))
    reached("approval.decide.before")
    await _store(session, said, drafts)
    for _, request_id, _ in decisions:
        session.requests.close(request_id)
    reached("approval.decide.after")
    for held, request_id, answer in decisions:
        rule = rule_of(held.questions[request_id], answer, session.record, session.rule_agent(session.plan.name))
        if rule is not None:
            await session.keep_rule(rule)


_Said = Sequence[tuple[Held, Question]]
"""What decisions are about, as it was before them."""


def _say(decisions: Sequence[Deciding]) -> _Said:
    """Let decisions be found by a second answer, which waits for `_to_its_end`."""
    before = [(held, held.questions[request_id]) for held, request_id, _ in decisions]
    for held, request_id, answer in decisions:
        held.questions[request_id] = held.questions[request_id].decided(answer)
        held.storing += 1
        held.under_way[request_id] = asyncio.Event()
    return before


async def _store(session: OpenSession, said: _Said, drafts: Sequence[Draft], puts: Sequence[Put] = ()) -> None:
    """Store decisions; where that fails, what was before them counts again.

    Raises:
        SidecarError: it has failed.
    """
    try:
        await session.store_now(drafts, puts)
    except StoreError as error:
        for held, question in said:
            held.questions[question.pending.request_id] = question
        raise storage_error(error, session.session_id) from error


async def _to_its_end(said: _Said, storing: Coroutine[None, None, None]) -> None:
    """Wait for decisions to be stored, which a cancelled caller does not cut. Whoever waits comes after the caller."""
    task = asyncio.create_task(storing)
    try:
        await asyncio.shield(task)
    finally:
        if task.done():
            _let_on(said)
        else:
            task.add_done_callback(lambda _: _let_on(said))


def _let_on(said: _Said) -> None:
    for held, question in said:
        held.storing -= 1
        held.under_way.pop(question.pending.request_id).set()
