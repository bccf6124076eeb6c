"""Who may run on a session: one run at a time, the others in a queue. Knows nothing of what a run does."""

import asyncio
from collections import deque
from collections.abc import Sequence

from sidecar.sessions.tickets import RunTicket


class RunSlot:
    """The guard of one session. It is taken and given on without a gap, so that nobody slips in between."""

    def __init__(self) -> None:
        self._holder: RunTicket | None = None
        self._waiting: deque[tuple[RunTicket, asyncio.Future[None]]] = deque()

    @property
    def holder(self) -> RunTicket | None:
        """The run that has the session."""
        return self._holder

    @property
    def waiting(self) -> Sequence[RunTicket]:
        """The runs that wait, the next one first."""
        return tuple(ticket for ticket, _ in self._waiting)

    def take(self, ticket: RunTicket) -> bool:
        """Take the session, if nobody has it."""
        if self._holder is not None:
            return False
        self._holder = ticket
        return True

    def join(self, ticket: RunTicket) -> int:
        """Queue up; the place, 1 for the next."""
        self._waiting.append((ticket, asyncio.get_running_loop().create_future()))
        return len(self._waiting)

    async def turn_comes(self, ticket: RunTicket) -> bool:
        """Wait in the queue until the session is this run's, or until somebody wants the run to stop.

        Returns:
            Whether the run has the session now.
        """
        turn = next(future for waiting, future in self._waiting if waiting is ticket)
        stopped = asyncio.create_task(ticket.stopped())
        try:
            await asyncio.wait({turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not turn.done():
                self._waiting = deque(entry for entry in self._waiting if entry[0] is not ticket)
        return turn.done()

    def leave(self, ticket: RunTicket) -> None:
        """The run has ended: the session is the next one's."""
        if self._holder is not ticket:
            return
        self._holder = None
        if self._waiting:
            following, turn = self._waiting.popleft()
            self._holder = following
            turn.set_result(None)
