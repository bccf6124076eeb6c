"""`closeSession`: stop what runs, let go of the session; its data stays."""

from protocol.base import Empty
from protocol.methods import SESSION_CLOSED
from protocol.sessions import SessionClosed, SessionParams

from .services import Call, Services
from .stopping import stopped


async def close_session(params: SessionParams, call: Call, services: Services) -> Empty:
    """Answered when the session is free for other processes."""
    was_open = services.sessions.find_open(params.session_id) is not None
    async with stopped(params.session_id, services):
        await services.sessions.close(params.session_id)
    if was_open:
        closed = SessionClosed(session_id=params.session_id, reason="closed")
        services.sessions.outlet.notify(SESSION_CLOSED, closed.wire())
    return Empty()
