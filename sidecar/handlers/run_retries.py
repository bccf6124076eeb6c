"""A `run` that was sent before, under the same id: attach to it, or give its stored answer. It is never run twice."""

from protocol.runs import RunAccepted, RunParams, RunResult
from sidecar.errors import IdempotencyConflict
from sidecar.sessions.admission import answer_of, attend
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.record import RunRecord
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.tickets import RunTicket
from sidecar.sessions.views import find_joined_run, find_run, stored_result
from sidecar.stores.base import StoreError

from .services import Call


async def attach(session: OpenSession, params: RunParams, payload: str, call: Call) -> RunResult | RunAccepted | None:
    """What the run with this id gives; `None` if there is none.

    Raises:
        IdempotencyConflict: the id was used with another payload.
        SidecarError: that run failed; its own error.
    """
    run_id = str(params.run_id)
    live = _live(session, run_id)
    if live is not None:
        _compare(live.payload_hash, payload, session, run_id)
        return await _attend(live, session, params, call)
    try:
        record = await find_run(session.store, session.session_id, run_id)
        if record is None:
            return None
        _compare(record.payload_hash, payload, session, run_id)
        live = _live(session, record.alias_of or run_id)
        if live is not None:
            return await _attend(live, session, params, call)
        call.leave_lane()
        ended = await _ended(session, run_id)
        ended_id = ended.run_id if ended else run_id
        result = await stored_result(session.store, session.session_id, ended_id)
        pending = session.approvals.pending(ended_id)
        return result.model_copy(update={"pending_requests": tuple(pending)}) if pending else result
    except StoreError as error:
        raise storage_error(error, session.session_id) from error


async def _ended(session: OpenSession, run_id: str) -> RunRecord | None:
    """The record of a run that is no longer at work; its end may still wait to be stored."""
    record = await find_joined_run(session.store, session.session_id, run_id)
    if record is not None and not record.ended:
        await session.log.flush()
        record = await find_joined_run(session.store, session.session_id, run_id)
    return record


def _live(session: OpenSession, run_id: str) -> RunTicket | None:
    holder = session.slot.holder
    at_work = (*((holder,) if holder is not None else ()), *session.slot.waiting)
    return next((ticket for ticket in at_work if ticket.run_id == run_id), None)


def _compare(known: str, payload: str, session: OpenSession, run_id: str) -> None:
    if known != payload:
        raise IdempotencyConflict(f"run id {run_id!r}", session_id=session.session_id, run_id=run_id)


async def _attend(live: RunTicket, session: OpenSession, params: RunParams, call: Call) -> RunResult | RunAccepted:
    call.leave_lane()
    if params.wait == "completed":
        return await attend(live, call.run_ticket)
    await live.recorded.wait()
    if live.ended.is_set():
        return answer_of(live)
    waiting = session.slot.waiting
    if live in waiting:
        place = waiting.index(live) + 1
        return RunAccepted(run_id=live.run_id, status="queued", queue_position=place, last_seq=session.log.seq)
    return RunAccepted(run_id=live.run_id, status="running", last_seq=session.log.seq)
