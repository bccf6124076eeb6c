"""`resolveRequest`: a late answer to a request to the host; the last decision that a parked run waited for goes on."""

from protocol.base import Json, JsonObject
from protocol.host import ResolveRequestParams, ResolveRequestResult
from sidecar.sessions.admission import Admission
from sidecar.sessions.approval_options import DENIED, read_outcome
from sidecar.sessions.approvals import Held
from sidecar.sessions.deciding import decide
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.tickets import RunTicket
from sidecar.sessions.turn_request import TurnRequest
from sidecar.telemetry import LOGGER

from .services import Call, Reply, Services


async def resolve_request(params: ResolveRequestParams, call: Call, services: Services) -> ResolveRequestResult | Reply:
    """Answer what waits in this process, or decide what was parked."""
    session = await _session_of(params, services)
    if session is None:
        return ResolveRequestResult(status="unknown")
    answer: JsonObject = {"result": params.result} if params.error is None else {"error": params.error}
    status = session.requests.resolve(params.request_id, answer)
    found = session.approvals.find(params.request_id) if status == "unknown" else None
    if found is None:
        return ResolveRequestResult(status=status)
    held, question = found
    if question.decision is not None:
        return ResolveRequestResult(status="alreadyResolved")
    result: Json = answer.get("result")
    decided = DENIED if params.error is not None else read_outcome(result, question.options)
    await decide(session, held, params.request_id, decided)
    if not held.is_decided or held.taken_by is not None:
        return ResolveRequestResult(status="resolved")
    ticket = services.tickets.register(session.session_id, None)
    held.taken_by = ticket.run_id
    going_on = _GoingOn(params, session, held, ticket, services)
    return Reply(ResolveRequestResult(status="resolved", run_id=ticket.run_id), going_on.run)


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


class _GoingOn:
    """The run that goes on with decided calls. Its end is told by its events."""

    def __init__(
        self, params: ResolveRequestParams, session: OpenSession, held: Held, ticket: RunTicket, services: Services
    ) -> None:
        self._params = params
        self._session = session
        self._held = held
        self._ticket = ticket
        self._services = services

    async def run(self) -> None:
        """Run, as soon as the session is free."""
        parked, params, session = self._held.parked, self._params, self._session
        if parked is None:
            return
        request = TurnRequest(
            input_messages=(),
            options=parked.options,
            payload_hash="",
            response_schema=parked.response_schema,
            kwargs=params.function_invocation_kwargs,
            client_kwargs=params.client_kwargs,
            timeout_ms=session.workspace.limits.run_timeout_ms or None,
            goes_on_with=self._held,
        )
        setup = self._services.run_setup
        try:
            await Admission(session, self._ticket, request, setup, lambda: None, None).run("queue")
        except Exception as error:
            LOGGER.info("run %s: %s", self._ticket.run_id, type(error).__name__)
        finally:
            if self._held.taken_by == self._ticket.run_id:
                self._held.taken_by = None
            self._services.tickets.forget(self._ticket)
