"""`resolveRequest`: a late answer to a request to the host; the last decision that a parked run waited for goes on."""

from protocol.base import JsonObject
from protocol.host import ResolveRequestParams, ResolveRequestResult
from sidecar.errors import InvalidParams
from sidecar.sessions.approval_options import DENIED, read_outcome
from sidecar.sessions.approvals import Held
from sidecar.sessions.deciding import Deciding, resolve
from sidecar.sessions.host_requests import Resolved
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.views import was_resolved
from sidecar.stores.base import StoreError

from .going_on import take
from .services import Call, Reply, Services


async def resolve_request(params: ResolveRequestParams, call: Call, services: Services) -> ResolveRequestResult | Reply:
    """Answer what waits in this process, or decide what was parked. What is all decided goes on, once."""
    if ("result" in call.raw) == (params.error is not None):
        fault = {"path": "result", "message": "give either result or error"}
        raise InvalidParams("resolveRequest needs either the request's result or an error", [fault])
    session = await _session_of(params, services)
    if session is None:
        return ResolveRequestResult(status="unknown")
    answer: JsonObject = {"result": params.result} if params.error is None else {"error": params.error}
    status = await session.requests.resolve(params.request_id, answer)
    found = session.approvals.find(params.request_id)
    if status == "unknown" and found is None:
        known = await was_resolved(session.store, session.session_id, params.request_id)
        return ResolveRequestResult(status="alreadyResolved" if known else "unknown")
    if status == "resolved" or found is None:
        await _wait_for_store(session, status)
        return ResolveRequestResult(status=status)
    held, question = found
    if held.taken_by is None:
        decided = DENIED if params.error is not None else read_outcome(params.result, question.options)
        status = await resolve(session, Deciding(held, params.request_id, decided))
    elif question.decision is not None:
        status = "alreadyResolved"
    await _wait_for_store(session, status)
    return _gone_on(params, session, held, status, services)


async def _wait_for_store(session: OpenSession, status: Resolved) -> None:
    """Let what resolved a request earlier be stored: else a crash could take back what is answered here.

    Raises:
        SidecarError: it is not stored, and cannot be now.
    """
    if status != "alreadyResolved":
        return
    try:
        await session.log.flush()
    except StoreError as error:
        raise storage_error(error, session.session_id) from error


def _gone_on(
    params: ResolveRequestParams, session: OpenSession, held: Held, status: Resolved, services: Services
) -> ResolveRequestResult | Reply:
    kwargs = params.function_invocation_kwargs
    going_on = take(session, held, services, kwargs=kwargs, client_kwargs=params.client_kwargs)
    if going_on is None:
        return ResolveRequestResult(status=status)
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
