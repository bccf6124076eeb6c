"""Stops every run of a session, the waiting ones too, and keeps others away while it is closed or deleted."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from .services import Services


@asynccontextmanager
async def stopped(session_id: str, services: Services) -> AsyncGenerator[None, None]:
    """Wait until each run has its end. From the call on none begins; where the session cannot be let go of, it may."""
    session = services.sessions.find_open(session_id)
    if session is None:
        yield
        return
    slot = session.slot
    slot.is_closed = True
    try:
        while at_work := [*slot.waiting, *((slot.holder,) if slot.holder is not None else ())]:
            for ticket in at_work:
                ticket.cancel()
            await asyncio.gather(*(ticket.ended.wait() for ticket in at_work))
        yield
    except BaseException:
        slot.is_closed = services.sessions.find_open(session_id) is not session
        raise
