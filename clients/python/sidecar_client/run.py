"""One run in progress, as its caller sees it: events, result, cancel. Who sends it is the client."""

import asyncio
from collections.abc import Callable
from typing import Self, TypeAlias

from .connection import Call
from .intake import EventBuffer, Intake
from .types import JsonObject, RunEvent, RunResult

OnEvent: TypeAlias = Callable[[RunEvent], None]


class Run:
    """A run in progress: an asynchronous iterator of its events that ends with its answer.

    Events wait here until they are read; where too many wait, the sidecar's output is read no further (see `intake`).
    So read them, or await `result`. A failed run raises its `RpcError` at the end of the iteration, and from `result`.

    Attributes:
        run_id: The run's id.
        params: The params of `run`.
    """

    def __init__(self, params: JsonObject, intake: Intake) -> None:
        self.run_id: str = params["runId"]
        self.params = params
        self._intake = intake
        self._events = EventBuffer(intake)
        self._answer: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._call: Call | None = None
        self._cancelled = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        event = await self._events.get()
        if event is not None:
            return event
        self._answer.result()
        raise StopAsyncIteration

    async def result(self) -> RunResult:
        """Wait for the answer to `run`.

        Raises:
            RpcError: The run failed, or was refused.
            SidecarDied: The sidecar ended first.
        """
        with self._intake.waited_for():
            return await asyncio.shield(self._answer)

    def cancel(self) -> None:
        """Stop the run. Its result then comes with status `cancelled`, unless it had ended already."""
        self._cancelled = True
        if self._call is not None and not self._answer.done():
            self._call.cancel()

    @property
    def was_sent(self) -> bool:
        """Whether some process may know of it."""
        return self._call is not None

    def sent(self, call: Call) -> None:
        """Called by the client: the run is on its way, for the first time or again."""
        self._call = call
        if self._cancelled:
            call.cancel()

    def push(self, event: RunEvent) -> None:
        """Called by the client with each event, in the order of arrival."""
        self._events.put(event)

    def settle(self, result: RunResult | None, error: BaseException | None = None) -> None:
        """Called by the client: this is the answer."""
        if self._answer.done():
            return
        if error is not None:
            self._answer.set_exception(error)
            self._answer.exception()  # marks it as seen: the end of the iteration, or `result`, raises it
        elif result is not None:
            self._answer.set_result(result)
        self._events.end()


async def finish(run: Run, on_event: OnEvent | None = None) -> RunResult:
    """See a run through. Cancelling this wait cancels the run.

    Raises:
        RpcError: The run failed, or was refused.
        SidecarDied: The sidecar ended first.
    """
    try:
        async for event in run:
            if on_event is not None:
                on_event(event)
        return await run.result()
    except BaseException:
        run.cancel()
        raise
