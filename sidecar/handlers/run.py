"""`run`: an agent works on some input; the answer comes after the last event of the run."""

import asyncio
from dataclasses import replace

from protocol.agents import RunOptions
from protocol.runs import RunParams, RunResult
from sidecar.agents.structured import response_schema
from sidecar.errors import IdempotencyConflict, InvalidParams, RunNotFound, SessionBusy, StoredFailure
from sidecar.handlers.payload import payload_hash
from sidecar.handlers.refusals import input_messages, new_messages, refuse_what_is_not_there
from sidecar.handlers.services import Call, Services
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.record import RunRecord
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.turn import Turn, TurnRequest, run_result
from sidecar.sessions.views import find_run, run_output
from sidecar.stores.base import StoreError

NOT_PAYLOAD = frozenset(
    {
        "runId",
        "sessionId",
        "_meta",
        "wait",
        "stream",
        "whenBusy",
        "timeoutMs",
        "properties",
        "workDoneToken",
        "partialResultToken",
        "functionInvocationKwargs",
        "clientKwargs",
    }
)
"""Fields that do not change what is asked for."""


async def run(params: RunParams, call: Call, services: Services) -> RunResult:
    """Take the session's slot, run, answer. A known `runId` gives what that run gave."""
    refuse_what_is_not_there(params)
    request = TurnRequest(
        input_messages=input_messages(params.input),
        options=params.options or RunOptions(),
        payload_hash=payload_hash(call.raw, NOT_PAYLOAD),
        response_schema=response_schema(params.response_format),
        timeout_ms=params.timeout_ms,
        stream=params.stream,
        event_extra={"_meta": {"requestId": call.request_id}} if params.session_id is None else None,
    )
    if params.session_id is None:
        return await _run_one_off(params, request, call, services)
    if params.agent is not None:
        fault = {"path": "agent", "message": "only without sessionId"}
        raise InvalidParams("a session has its agent already; leave out agent or sessionId", [fault])
    session = await services.sessions.get_open(params.session_id)
    if params.run_id is not None:
        earlier = await _earlier(session, params.run_id, request.payload_hash, call)
        if earlier is not None:
            return earlier
    if any(message.message_id is not None for message in request.input_messages):
        known = {message.message_id for message in await session.transcript.load(session.session_id)}
        request = replace(request, input_messages=new_messages(request.input_messages, known))
    return await _take_slot(session, request, call, services).run()


async def _run_one_off(params: RunParams, request: TurnRequest, call: Call, services: Services) -> RunResult:
    session = await services.sessions.create_one_off(params.agent)
    if call.ticket is not None:
        forgotten = services.tickets.remember_one_off(call.ticket.run_id, session.session_id)
        if forgotten is not None:
            await services.sessions.drop_one_off(forgotten)
    return await _take_slot(session, request, call, services).run()


def _take_slot(session: OpenSession, request: TurnRequest, call: Call, services: Services) -> Turn:
    """From here on the session is busy with this run."""
    ticket = call.ticket
    if ticket is None:
        raise RunNotFound("?")
    if session.turn is not None:
        raise SessionBusy(session.session_id, session.turn.run_id)
    ticket.begun = True
    turn = Turn(
        session,
        ticket,
        request,
        services.models,
        services.sessions.outlet.breathe,
        keep_event_runs=services.keep_event_runs,
    )
    session.turn = turn
    call.leave_lane()
    return turn


async def _earlier(session: OpenSession, run_id: str, payload: str, call: Call) -> RunResult | None:
    """What a run with this id gave, waiting for it if it is still at work."""
    turn = session.turn
    if turn is not None and turn.run_id == run_id:
        if turn.payload_hash != payload:
            raise IdempotencyConflict(f"run id {run_id!r}", session_id=session.session_id, run_id=run_id)
        call.leave_lane()
        await _attend(turn, call)
    try:
        record = await find_run(session.store, session.session_id, run_id)
        if record is None:
            return None
        if record.payload_hash != payload:
            raise IdempotencyConflict(f"run id {run_id!r}", session_id=session.session_id, run_id=run_id)
        call.leave_lane()
        return await _stored_result(session, record)
    except StoreError as error:
        raise storage_error(error, session.session_id) from error


async def _attend(turn: Turn, call: Call) -> None:
    """Wait for a run that another request started; who attaches to it may also stop it."""
    ended = asyncio.create_task(turn.done.wait())
    stopped = asyncio.create_task(call.ticket.stopped()) if call.ticket is not None else ended
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        turn.cancel()
        await ended
    stopped.cancel()


async def _stored_result(session: OpenSession, record: RunRecord) -> RunResult:
    if record.error is not None:
        raise StoredFailure(record.error)
    return run_result(record, session.session_id, await run_output(session.store, session.session_id, record))
