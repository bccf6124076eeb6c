"""`resolveRequest`: a late answer to a request to the host; the last decision that a parked run waited for goes on."""

from protocol.base import Json, JsonObject
from protocol.host import ResolveRequestParams, ResolveRequestResult
from sidecar.sessions.approval_options import DENIED, read_outcome
from sidecar.sessions.deciding import Deciding, decide
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.views import was_resolved

from .going_on import GoingOnRun, promised_id
from .services import Call, Reply, Services


async def resolve_request(params: ResolveRequestParams, call: Call, services: Services) -> ResolveRequestResult | Reply:
    """Answer what waits in this process, or decide what was parked. What is all decided goes on, once."""
    session = await _session_of(params, services)
    if session is None:
        return ResolveRequestResult(status="unknown")
    answer: JsonObject = {"result": params.result} if params.error is None else {"error": params.error}
    status = await session.requests.resolve(params.request_id, answer)
    found = session.approvals.find(params.request_id)
    if (
        found is None
        and status == "unknown"
        and await was_resolved(session.store, session.session_id, params.request_id)
    ):
        status = "alreadyResolved"
    if status == "resolved" or found is None:
        return ResolveRequestResult(status=status)
    held, question = found
    if status == "unknown" and question.decision is None and held.taken_by is None:
        result: Json = answer.get("result")
        decided = DENIED if params.error is not None else read_outcome(result, question.options)
        await decide(session, [Deciding(held, params.request_id, decided)])
        status = "resolved"
    elif question.decision is not None:
        status = "alreadyResolved"
    if held.parked is None or held.taken_by is not None or not held.is_decided:
        return ResolveRequestResult(status=status)
    run_id = await promised_id(session, held.parked)
    if held.taken_by is not None:  # meanwhile
        return ResolveRequestResult(status=status)
    kwargs = params.function_invocation_kwargs
    going_on = GoingOnRun(
        session, held, held.parked, run_id, services, kwargs=kwargs, client_kwargs=params.client_kwargs
    )
    return Reply(ResolveRequestResult(status=status, run_id=going_on.run_id), going_on.run)


async def _session_of(params: ResolveRequestParams, services: Services) -> OpenSession | None:
    if params.session_id is not None:
        return await services.sessions.get_open(params.session_id)
    return next(
        (
            session
            for session in services.sessions.open_sessions
            if session.approvals.find(params.request_id) or session.requests.knows(params.request_id)
        ),
        None,
    )
