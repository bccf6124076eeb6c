"""Who may run on a session: one run at a time, the others in a queue. Knows nothing of what a run does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from .tickets import RunTicket


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the queue."""

    position: int
    """1 for the run that is next."""
    turn: asyncio.Future[None]
    """Done when the session is this run's."""


class RunSlot:
    """The guard of one session. It is taken and given on without a gap, so that nobody slips in between."""

    def __init__(self) -> None:
        self._holder: RunTicket | None = None
        self._waiting: dict[RunTicket, asyncio.Future[None]] = {}
        self.is_closed = False
        """The session is being let go of, or is gone: nobody is to ask for it any more."""

    @property
    def holder(self) -> RunTicket | None:
        """The run that has the session."""
        return self._holder

    @property
    def waiting(self) -> Sequence[RunTicket]:
        """The runs that wait, the next one first."""
        return tuple(self._waiting)

    def take(self, ticket: RunTicket) -> bool:
        """Take the session, if nobody has it."""
        if self._holder is not None:
            return False
        self._holder = ticket
        return True

    def join(self, ticket: RunTicket) -> Place:
        """Queue up behind the others."""
        turn = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        return Place(len(self._waiting), turn)

    async def turn_comes(self, ticket: RunTicket, place: Place) -> bool:
        """Wait in the queue until the session is this run's, or until somebody wants the run to stop.

        Returns:
            Whether the run has the session now; if not, it has left the queue.
        """
        stopped = asyncio.create_task(ticket.stopped())
        try:
            await asyncio.wait({place.turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            self._waiting.pop(ticket, None)
        return place.turn.done()

    def leave(self, ticket: RunTicket) -> None:
        """The run has ended, or waits no longer: the session is the next one's. Again: no effect."""
        self._waiting.pop(ticket, None)
        if self._holder is not ticket:
            return
        self._holder = None
        if self._waiting:
            following = next(iter(self._waiting))
            turn = self._waiting.pop(following)
            self._holder = following
            turn.set_result(None)
