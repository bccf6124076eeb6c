"""What a client does with one session: run, cancel, look in. A `Run` is one run in progress."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, Unpack

from sidecar_client.types import (
    CancelRunResult,
    GetHistoryParams,
    GetStateParams,
    History,
    JsonObject,
    RunEvent,
    RunInput,
    RunParams,
    RunResult,
    SessionInfo,
    State,
)

if TYPE_CHECKING:
    from sidecar_client.client import SidecarClient
    from sidecar_client.connection import Call

OnEvent = Callable[[RunEvent], None]


class Run:
    """A run in progress: an asynchronous iterator of its events that ends with its answer.

    Events wait here until they are read. A failed run raises its `RpcError` at the end of the iteration, and from
    `result`.

    Attributes:
        run_id: The run's id.
    """

    def __init__(self, run_id: str, call: "Call") -> None:
        self.run_id = run_id
        self._call = call
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        call.answer.add_done_callback(self._end)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        event = await self._events.get()
        if event is not None:
            return event
        self._events.put_nowait(None)  # the end stays the end, however often it is asked for
        self._call.answer.result()
        raise StopAsyncIteration

    async def result(self) -> RunResult:
        """Wait for the answer to `run`.

        Raises:
            RpcError: The run failed, or was refused.
            SidecarDied: The sidecar ended first.
        """
        return await asyncio.shield(self._call.answer)

    def cancel(self) -> None:
        """Stop the run. Its result then comes with status `cancelled`, unless it had ended already."""
        if not self._call.answer.done():
            self._call.cancel()

    def push(self, event: RunEvent) -> None:
        """Add an event; called by the client in the order of arrival."""
        self._events.put_nowait(event)

    def _end(self, answer: "asyncio.Future[Any]") -> None:
        if not answer.cancelled():
            answer.exception()  # marks it as seen: the end of the iteration, or `result`, raises it
        self._events.put_nowait(None)


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


class Session:
    """A session that is open in the sidecar.

    Attributes:
        session_id: The session's id.
        opened: The answer of `createSession` or `resumeSession`.
    """

    def __init__(self, client: "SidecarClient", opened: JsonObject) -> None:
        self._client = client
        self.opened = opened
        self.session_id: str = opened["session"]["sessionId"]

    @property
    def info(self) -> SessionInfo:
        """The session as it was when it was opened."""
        return self.opened["session"]

    def stream(self, run_input: RunInput, **params: Unpack[RunParams]) -> Run:
        """Start a run; iterate over what this returns for the events.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        return self._client.start_run({**params, "sessionId": self.session_id, "input": run_input})

    async def run(self, run_input: RunInput, on_event: OnEvent | None = None, **params: Unpack[RunParams]) -> RunResult:
        """Run, and wait for the result; `on_event` is called with each event in order. Cancelling it cancels the run.

        Raises:
            RpcError: The run failed, or was refused.
            SidecarDied: The sidecar ended first.
        """
        return await finish(self.stream(run_input, **params), on_event)

    async def cancel(self, run_id: str | None = None) -> CancelRunResult:
        """Stop a run of this session; the active one if none is named."""
        named = {} if run_id is None else {"runId": run_id}
        return await self._client.request("cancelRun", {"sessionId": self.session_id, **named})

    async def get_state(self, **params: Unpack[GetStateParams]) -> State:
        """Look at the session; works during a run."""
        return await self._client.request("getState", {**params, "sessionId": self.session_id})

    async def get_history(self, **params: Unpack[GetHistoryParams]) -> History:
        """A page of the transcript."""
        return await self._client.request("getHistory", {**params, "sessionId": self.session_id})

    async def close(self) -> None:
        """Close the session in the sidecar; what is stored stays."""
        await self._client.request("closeSession", {"sessionId": self.session_id})
