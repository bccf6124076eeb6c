"""`closeSession`: stop what runs, let go of the session; its data stays."""

from protocol.base import Empty
from protocol.sessions import SessionParams
from sidecar.handlers.services import Call, Services


async def close_session(params: SessionParams, call: Call, services: Services) -> Empty:
    """Answered when the session is free for other processes."""
    session = services.sessions.find_open(params.session_id)
    turn = session.turn if session is not None else None
    if turn is not None:
        turn.cancel()
        await turn.done.wait()
    await services.sessions.close(params.session_id)
    return Empty()
