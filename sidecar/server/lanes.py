"""The order of requests that name the same session: one lane a session, filled by the reader."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from sidecar.handlers.table import Lane


@dataclass(slots=True)
class _Queue:
    """Where the next request of a session has to wait."""

    tail: asyncio.Future[None] | None = None
    """Ends when the last ordered request has left."""
    opens: asyncio.Future[None] | None = None
    """Ends when the last request that opens the session is done."""
    users: int = 0


@dataclass(frozen=True, slots=True)
class _Own:
    """A place in one lane."""

    before: asyncio.Future[None] | None
    left: asyncio.Future[None]

    def leave(self) -> None:
        """Let the next one in this lane begin, as soon as everything before has left."""
        if self.before is None or self.before.done():
            self.left.set_result(None)
        else:
            self.before.add_done_callback(lambda _: self.left.set_result(None))


@dataclass(slots=True)
class Pass:
    """One request's place."""

    _wait_for: Sequence[asyncio.Future[None]] = ()
    _own: Sequence[_Own] = ()
    _left: bool = field(default=False)
    started: bool = field(default=False)
    """Its turn has come."""

    async def wait(self) -> None:
        """Wait for what has to come first."""
        for earlier in self._wait_for:
            if not earlier.done():
                await asyncio.shield(earlier)
        self.started = True

    def leave(self) -> None:
        """Let the next one begin, as soon as everything before has begun too. Again: no effect."""
        if self._left:
            return
        self._left = True
        for own in self._own:
            own.leave()


class Lanes:
    """All sessions' lanes. A lane without requests takes no memory."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    def enter(self, session_id: str | None, lane: Lane, creates: str | None = None) -> Pass:
        """Take a place. Called in the reader, so that places are in the order of arrival.

        Args:
            session_id: The session that the request names.
            lane: How it stands among those that name the same one.
            creates: Another session that it makes: whatever names that one waits for the end of this request.
        """
        places = [] if session_id is None or lane is Lane.FREE else [self._join(session_id, lane)]
        if creates is not None and (creates != session_id or not places):
            places.append(self._join(creates, Lane.OPENS))
        wait_for = [place.before for place in places if place.before is not None]
        if session_id is not None and lane is Lane.FREE:
            queue = self._queues.get(session_id)
            wait_for += [queue.opens] if queue is not None and queue.opens is not None else []
        return Pass(wait_for, places)

    def _join(self, session_id: str, lane: Lane) -> _Own:
        queue = self._queues.get(session_id)
        if queue is None:
            queue = self._queues[session_id] = _Queue()
        own = _Own(queue.tail, asyncio.get_running_loop().create_future())
        queue.tail = own.left
        if lane is Lane.OPENS:
            queue.opens = own.left
        queue.users += 1
        own.left.add_done_callback(lambda _: self._left(session_id, queue))
        return own

    def _left(self, session_id: str, queue: _Queue) -> None:
        queue.users -= 1
        if queue.users == 0 and self._queues.get(session_id) is queue:
            del self._queues[session_id]
