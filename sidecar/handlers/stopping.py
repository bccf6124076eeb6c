"""Stops every run of a session, the waiting ones too, before the session is closed or deleted."""

import asyncio

from .services import Services


async def stop_runs(session_id: str, services: Services) -> None:
    """Ask them to stop, and wait until each has its end."""
    session = services.sessions.find_open(session_id)
    if session is None:
        return
    holder = session.slot.holder
    tickets = [*session.slot.waiting, *((holder,) if holder is not None else ())]
    for ticket in tickets:
        ticket.cancel()
    await asyncio.gather(*(ticket.ended.wait() for ticket in tickets))
