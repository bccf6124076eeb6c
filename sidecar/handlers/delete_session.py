"""`deleteSession`: remove a session and all that belongs to it. Deleting what is not there is no error."""

from protocol.base import Empty
from protocol.methods import SESSION_CLOSED
from protocol.sessions import SessionClosed, SessionParams

from .services import Call, Services
from .stopping import stop_runs


async def delete_session(params: SessionParams, call: Call, services: Services) -> Empty:
    """Stops what runs first."""
    await stop_runs(params.session_id, services)
    if await services.sessions.delete(params.session_id):
        closed = SessionClosed(session_id=params.session_id, reason="deleted")
        services.sessions.outlet.notify(SESSION_CLOSED, closed.wire())
    return Empty()
