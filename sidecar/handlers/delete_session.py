"""`deleteSession`: remove a session and all that belongs to it. Deleting what is not there is no error."""

from protocol.base import Empty
from protocol.methods import SESSION_CLOSED
from protocol.sessions import SessionClosed, SessionParams

from .services import Call, Services
from .stopping import stopped


async def delete_session(params: SessionParams, call: Call, services: Services) -> Empty:
    """Stops what runs first."""
    async with stopped(params.session_id, services):
        was_there = await services.sessions.delete(params.session_id)
    if was_there:
        closed = SessionClosed(session_id=params.session_id, reason="deleted")
        services.sessions.outlet.notify(SESSION_CLOSED, closed.wire())
    return Empty()
