"""The run that goes on with decided calls of an earlier one, begun by no `run`. Its end is told by its events."""

from protocol.base import JsonObject
from sidecar.sessions.admission import Admission
from sidecar.sessions.approvals import Held, Parked
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.supplied import missing
from sidecar.sessions.turn_request import TurnRequest
from sidecar.sessions.views import find_run
from sidecar.telemetry import LOGGER

from .services import Services


class GoingOnRun:
    """One such run: its id is known at once, `run` does it."""

    def __init__(
        self,
        session: OpenSession,
        held: Held,
        parked: Parked,
        run_id: str | None,
        services: Services,
        *,
        kwargs: JsonObject | None = None,
        client_kwargs: JsonObject | None = None,
    ) -> None:
        """Take the calls, so that no other run goes on with them.

        Args:
            session: The session.
            held: The calls.
            parked: What the earlier run has left for this one.
            run_id: Its id; `None`: a new one.
            services: The sidecar's.
            kwargs: `functionInvocationKwargs`, which are stored nowhere.
            client_kwargs: Likewise.
        """
        self._session = session
        self._held = held
        self._services = services
        self._ticket = services.tickets.register(session.session_id, run_id)
        held.taken_by = self._ticket.run_id
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


async def keep_promises(session: OpenSession, services: Services) -> None:
    """Go on with what was decided in a process that died: a client may have been told of that run.

    As long as the host has not supplied its tools and providers again, it waits: the call would find no tool.

    Raises:
        StoreError: it could not be looked up.
    """
    if missing(session.record, session.supplied):
        return
    while (held := session.approvals.promised()) is not None and held.parked is not None:
        await GoingOnRun(session, held, held.parked, await promised_id(session, held.parked), services).run()


async def promised_id(session: OpenSession, parked: Parked) -> str | None:
    """The id that was promised for the run that goes on; `None` where a run has had it already.

    Raises:
        StoreError: it could not be looked up.
    """
    has_begun = await find_run(session.store, session.session_id, parked.next_run_id) is not None
    return None if has_begun else parked.next_run_id
