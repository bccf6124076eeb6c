"""The order of requests that name the same session: one lane a session, filled by the reader."""

import asyncio
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


@dataclass(slots=True)
class Pass:
    """One request's place."""

    _wait_for: asyncio.Future[None] | None = None
    _own: asyncio.Future[None] | None = None
    _left: bool = field(default=False)
    started: bool = field(default=False)
    """Its turn has come."""

    async def wait(self) -> None:
        """Wait for what has to come first."""
        if self._wait_for is not None and not self._wait_for.done():
            await asyncio.shield(self._wait_for)
        self.started = True

    def leave(self) -> None:
        """Let the next one begin, as soon as everything before has begun too. Again: no effect."""
        if self._left or self._own is None:
            return
        self._left = True
        own = self._own
        if self._wait_for is None or self._wait_for.done():
            own.set_result(None)
        else:
            self._wait_for.add_done_callback(lambda _: own.set_result(None))


class Lanes:
    """All sessions' lanes. A lane without requests takes no memory."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    def enter(self, session_id: str | None, lane: Lane) -> Pass:
        """Take a place. Called in the reader, so that places are in the order of arrival."""
        if session_id is None:
            return Pass()
        queue = self._queues.get(session_id)
        if lane is Lane.FREE:
            return Pass(_wait_for=queue.opens if queue is not None else None)
        if queue is None:
            queue = self._queues[session_id] = _Queue()
        own = asyncio.get_running_loop().create_future()
        place = Pass(_wait_for=queue.tail, _own=own)
        queue.tail = own
        if lane is Lane.OPENS:
            queue.opens = own
        queue.users += 1
        own.add_done_callback(lambda _: self._left(session_id, queue))
        return place

    def _left(self, session_id: str, queue: _Queue) -> None:
        queue.users -= 1
        if queue.users == 0 and self._queues.get(session_id) is queue:
            del self._queues[session_id]
