"""The run that goes on with decided calls of an earlier one, begun by no `run`. Its end is told by its events."""

from protocol.base import JsonObject
from sidecar.sessions.admission import Admission
from sidecar.sessions.approvals import Held, Parked
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.supplied import missing
from sidecar.sessions.turn_request import TurnRequest
from sidecar.telemetry import LOGGER

from .services import Services


class GoingOnRun:
    """One such run: its id is known at once, `run` does it."""

    def __init__(
        self,
        session: OpenSession,
        held: Held,
        parked: Parked,
        services: Services,
        *,
        kwargs: JsonObject | None = None,
        client_kwargs: JsonObject | None = None,
    ) -> None:
        """Take the calls, so that no other run goes on with them; under the promised id, if no run has had that yet.

        Args:
            session: The session.
            held: The calls.
            parked: What the earlier run has left for this one.
            services: The sidecar's.
            kwargs: `functionInvocationKwargs`, which are stored nowhere.
            client_kwargs: Likewise.
        """
        self._session = session
        self._held = held
        self._services = services
        self._ticket = services.tickets.register(session.session_id, None if held.has_begun else parked.next_run_id)
        held.taken_by, held.has_begun = self._ticket.run_id, True
        self._request = TurnRequest(
            input_messages=(),
            options=parked.options,
            payload_hash="",
            response_schema=parked.response_schema,
            kwargs=kwargs,
            client_kwargs=client_kwargs,
            timeout_ms=session.workspace.limits.run_timeout_ms or None,
            goes_on_with=held,
        )

    @property
    def run_id(self) -> str:
        """Its id."""
        return self._ticket.run_id

    async def run(self) -> None:
        """Run, as soon as the session is free."""
        setup = self._services.run_setup
        try:
            await Admission(self._session, self._ticket, self._request, setup, lambda: None, None).run("queue")
        except Exception as error:
            LOGGER.info("run %s: %s", self.run_id, type(error).__name__)
        finally:
            if self._held.taken_by == self.run_id:
                self._held.taken_by = None
            self._services.tickets.forget(self._ticket)


def take(
    session: OpenSession,
    held: Held,
    services: Services,
    *,
    kwargs: JsonObject | None = None,
    client_kwargs: JsonObject | None = None,
) -> GoingOnRun | None:
    """The run that goes on with decided calls; they are taken by that.

    Nothing is waited for between the look and the taking: two that come at the same moment would both go on.

    Returns:
        `None` where another run has the calls, or has had them, and where something is still to be decided. Likewise
        where the process ends or lets go of the session: whoever opens it next goes on.
    """
    if services.tickets.are_stopped or session.slot.is_closed:
        return None
    if held.parked is None or held.taken_by is not None or not held.is_decided or held not in session.approvals:
        return None
    return GoingOnRun(session, held, held.parked, services, kwargs=kwargs, client_kwargs=client_kwargs)


async def keep_promises(session: OpenSession, services: Services) -> None:
    """Go on with what was decided in a process that died: a client may have been told of that run.

    As long as the host has not supplied its tools and providers again, it waits: the call would find no tool.
    """
    if missing(session.record, session.supplied):
        return
    while (held := session.approvals.promised()) is not None:
        going_on = take(session, held, services)
        if going_on is not None:
            await going_on.run()
