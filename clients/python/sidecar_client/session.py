"""What a client does with one session: run, steer, cancel, look in, fork. The run itself is in `run`."""

from typing import TYPE_CHECKING, Any, Unpack

from .host_requests import late_result
from .run import OnEvent, Run, finish
from .types import (
    CancelRunResult,
    EventsKeywords,
    ExplainRunResult,
    ForkKeywords,
    GetEventsResult,
    GetHistoryResult,
    GetStateResult,
    HistoryKeywords,
    JsonObject,
    ListApprovalRulesResult,
    ListToolsResult,
    PendingRequest,
    ResolveKeywords,
    ResolveRequestResult,
    RunInput,
    RunKeywords,
    RunResult,
    SessionInfo,
    StateKeywords,
    SteerRunResult,
    UpdateKeywords,
    UpdateSessionResult,
)

if TYPE_CHECKING:
    from .client import SidecarClient


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

    @property
    def pending_requests(self) -> list[PendingRequest]:
        """What waited for an answer when the session was resumed; `get_state` tells what does now."""
        return self.opened.get("pendingRequests", [])

    def stream(self, run_input: RunInput, **params: Unpack[RunKeywords]) -> Run:
        """Start a run; iterate over what this returns for the events.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        return self._client.start_run({**params, "sessionId": self.session_id, "input": run_input})

    async def run(
        self, run_input: RunInput, on_event: OnEvent | None = None, **params: Unpack[RunKeywords]
    ) -> RunResult:
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

    async def steer(self, run_input: RunInput, run_id: str) -> SteerRunResult:
        """Add input to a run under way; it joins the run's next model call."""
        params = {"sessionId": self.session_id, "expectedRunId": run_id, "input": run_input}
        return await self._client.request("steerRun", params)

    async def answer(
        self, pending: PendingRequest, answer: Any, **params: Unpack[ResolveKeywords]
    ) -> ResolveRequestResult:
        """Answer a request to the host late, or in another way than by its handler, with what that would have returned.

        Args:
            pending: The request, of `pending_requests`, a result's `pendingRequests` or `get_state`.
            answer: `allow_once()`, `reject("…")`, `accept({…})`, what a tool returns, …
            params: What the run that goes on is to be given.

        Raises:
            ValueError: An approval offers no such option.
            TypeError: It is a tool's call, and this is no result of one.
        """
        result = late_result(pending, answer)
        return await self._client.resolve_request(pending["requestId"], result, session_id=self.session_id, **params)

    async def list_tools(self) -> ListToolsResult:
        """The tools that the session's agent has, and whose each is."""
        return await self._client.list_tools(self.session_id)

    async def list_approval_rules(self) -> ListApprovalRulesResult:
        """The standing rules of approval that count in this session."""
        return await self._client.list_approval_rules(self.session_id)

    async def get_state(self, **params: Unpack[StateKeywords]) -> GetStateResult:
        """Look at the session; works during a run."""
        return await self._client.request("getState", {**params, "sessionId": self.session_id})

    async def get_history(self, **params: Unpack[HistoryKeywords]) -> GetHistoryResult:
        """A page of the transcript."""
        return await self._client.request("getHistory", {**params, "sessionId": self.session_id})

    async def get_events(self, **params: Unpack[EventsKeywords]) -> GetEventsResult:
        """A page of stored events after a cursor."""
        return await self._client.request("getEvents", {**params, "sessionId": self.session_id})

    async def explain_run(self, run_id: str, *, call: int | None = None) -> ExplainRunResult:
        """What the model saw in each call of a run, or in one of them."""
        return await self._client.explain_run(run_id, session_id=self.session_id, call=call)

    async def update(self, **params: Unpack[UpdateKeywords]) -> UpdateSessionResult:
        """Change settings, labels or state. What is left out stays as it is."""
        return await self._client.request("updateSession", {**params, "sessionId": self.session_id})

    async def fork(self, **params: Unpack[ForkKeywords]) -> SessionInfo:
        """Make a new session out of this one; `resume_session` opens it here."""
        answer = await self._client.request("forkSession", {**params, "sessionId": self.session_id})
        return answer["session"]

    async def close(self) -> None:
        """Close the session in the sidecar; what is stored stays."""
        await self._client.request("closeSession", {"sessionId": self.session_id})
