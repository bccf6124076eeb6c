"""A request that is at work, and waiting for several of them. Serves none."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from sidecar.handlers.services import Call

from .envelope import RequestId
from .lanes import Pass


@dataclass(slots=True, eq=False)
class Pending:
    """A request that has not been answered, or still has something to send after its answer."""

    id: RequestId
    method: str
    place: Pass = field(default_factory=Pass)
    call: Call | None = None
    task: asyncio.Task[None] | None = None
    stop: asyncio.Event | None = None
    """How it is told of its cancellation, where it ends by itself."""
    answered: bool = False
    since: float = field(default_factory=time.monotonic)
    stoppable: bool = True
    """It may be cut at any point: it changes nothing."""

    @property
    def is_run(self) -> bool:
        """Whether it is a `run`."""
        return self.call is not None and self.call.ticket is not None


async def done(requests: Iterable[Pending], timeout: float) -> None:
    """Wait until they are done, or the time is over, in seconds."""
    tasks = [pending.task for pending in requests if pending.task is not None and not pending.task.done()]
    if tasks and timeout > 0:
        await asyncio.wait(tasks, timeout=timeout)
