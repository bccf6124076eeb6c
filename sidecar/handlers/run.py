"""`run`: an agent works on some input; the answer comes after the last event of the run, or when it is accepted."""

from collections.abc import Sequence
from dataclasses import replace

from protocol.agents import RunOptions
from protocol.messages import Message
from protocol.runs import RunAccepted, RunParams, RunResult
from sidecar.agents.part_lookup import middleware_of
from sidecar.agents.structured import response_schema
from sidecar.errors import InvalidParams, SessionBusy
from sidecar.sessions.admission import Admission
from sidecar.sessions.approvals import Held
from sidecar.sessions.deciding import decide
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.turn_request import TurnRequest

from .payload import payload_hash
from .run_context import context_messages
from .run_decisions import told_decisions, without_decisions
from .run_input import input_messages, new_messages
from .run_retries import attach
from .services import Call, Services

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


async def run(params: RunParams, call: Call, services: Services) -> RunResult | RunAccepted:
    """Take the session's slot, a place in its queue, or be taken into the run under way.

    A known `runId` gives what that run gives.
    """
    request = TurnRequest(
        input_messages=input_messages(params.input),
        options=params.options or RunOptions(),
        payload_hash=payload_hash(call.raw, NOT_PAYLOAD),
        response_schema=response_schema(params.response_format),
        client_kwargs=params.client_kwargs,
        kwargs=params.function_invocation_kwargs,
        properties=params.properties,
        context_messages=await context_messages(params.context or (), services.documents),
        stream=params.stream,
        work_done_token=params.work_done_token,
        partial_result_token=params.partial_result_token,
    )
    if params.session_id is None:
        return await _run_one_off(params, request, call, services)
    if params.agent is not None:
        fault = {"path": "agent", "message": "only without sessionId"}
        raise InvalidParams("a session has its agent already; leave out agent or sessionId", [fault])
    session = await services.sessions.get_open(params.session_id)
    if params.run_id is not None:
        known = await attach(session, params, request.payload_hash, call)
        if known is not None:
            return known
    given, kept = request.input_messages, without_decisions(request.input_messages)
    request = replace(request, input_messages=kept, only_decides=not kept and bool(given))
    request = await _without_known_input(session, request)
    request = replace(request, middleware=await middleware_of(session.workspace, params.middleware or ()))
    held = await _decide(session, given, params.when_busy)
    if held is None or not held.is_decided:
        return await _admission(session, params, request, call, services).run(params.when_busy)
    held.taken_by = run_id = call.run_ticket.run_id
    try:
        request = replace(request, goes_on_with=held)
        return await _admission(session, params, request, call, services).run(params.when_busy)
    finally:
        if held.taken_by == run_id:
            held.taken_by = None


async def _run_one_off(
    params: RunParams, request: TurnRequest, call: Call, services: Services
) -> RunResult | RunAccepted:
    request = replace(request, input_messages=new_messages(request.input_messages, ()))
    earlier = services.tickets.one_off_session(params.run_id) if params.run_id is not None else None
    if earlier is not None and (session := services.sessions.find_open(earlier)) is not None:
        known = await attach(session, params, request.payload_hash, call)
        if known is not None:
            return known
        await services.sessions.drop_one_off(earlier)
    session = await services.sessions.create_one_off(params.agent)
    for forgotten in services.tickets.remember_one_off(call.run_ticket.run_id, session.session_id):
        await services.sessions.drop_one_off(forgotten)
    middleware = await middleware_of(session.workspace, params.middleware or ())
    request = replace(request, middleware=middleware, event_extra={"_meta": {"requestId": call.request_id}})
    return await _admission(session, params, request, call, services).run("reject")


async def _decide(session: OpenSession, given: Sequence[Message], when_busy: str) -> Held | None:
    """Store the approvals of the input; what holds the calls that they are about, and that the run goes on with."""
    held, decisions = told_decisions(session.approvals, given)
    if held is None:
        return None
    holder = session.slot.holder
    if holder is not None and when_busy != "queue":
        raise SessionBusy(session.session_id, holder.run_id, len(session.slot.waiting), ("queue",))
    if decisions:
        await decide(session, decisions)
    return held


async def _without_known_input(session: OpenSession, request: TurnRequest) -> TurnRequest:
    """Leave out what the transcript has already: a host may send the whole conversation each time."""
    given = request.input_messages
    may_be_known = any(message.message_id is not None or message.role != "user" for message in given)
    known = await session.transcript.load(session.session_id) if may_be_known else ()
    return replace(request, input_messages=new_messages(given, known, session.approvals.holding))


def _admission(
    session: OpenSession, params: RunParams, request: TurnRequest, call: Call, services: Services
) -> Admission:
    accepted = call.answer if params.wait == "accepted" else None
    timeout_ms = params.timeout_ms or session.workspace.limits.run_timeout_ms or None
    request = replace(request, timeout_ms=timeout_ms)
    return Admission(session, call.run_ticket, request, services.run_setup, call.leave_lane, accepted)
