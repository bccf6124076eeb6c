"""The requests of the contract that need no more than asking, a method each. Who sends them is not known here."""

from abc import ABC, abstractmethod
from typing import Any, Unpack

from .types import (
    DeleteMemoriesParams,
    ExplainRunResult,
    GetStateResult,
    Json,
    JsonObject,
    ListApprovalRulesResult,
    ListMemoriesParams,
    ListMemoriesResult,
    ListSessionsParams,
    ListSessionsResult,
    ListToolsResult,
    ResolveKeywords,
    ResolveRequestResult,
    SearchMemoriesParams,
    SearchMemoriesResult,
    SessionInfo,
    StateKeywords,
)


class Requests(ABC):
    """What can be asked of a sidecar, whatever is open in it."""

    @abstractmethod
    async def request(self, method: str, params: JsonObject | None = None) -> Any:
        """Send a request, and wait for its result."""

    async def list_sessions(self, **params: Unpack[ListSessionsParams]) -> ListSessionsResult:
        """A page of the stored sessions, newest first."""
        return await self.request("listSessions", {**params})

    async def export_session(self, session_id: str) -> JsonObject:
        """The whole session as one document. A long one needs `maxMessageBytes` among the `options` of `start`."""
        answer = await self.request("exportSession", {"sessionId": session_id})
        return answer["document"]

    async def import_session(self, document: JsonObject, session_id: str | None = None) -> SessionInfo:
        """Make a session out of an exported document, under the id in it or another one."""
        named = {} if session_id is None else {"newSessionId": session_id}
        answer = await self.request("importSession", {"document": document, **named})
        return answer["session"]

    async def explain_run(
        self, run_id: str, *, session_id: str | None = None, call: int | None = None
    ) -> ExplainRunResult:
        """What the model saw in each call of a run, or in one of them; without a session's id, of a one-off run.

        Raises:
            RpcError: There is no such run, or no such call.
        """
        named = {"sessionId": session_id, "call": call}
        given = {key: value for key, value in named.items() if value is not None}
        return await self.request("explainRun", {**given, "runId": run_id})

    async def list_memories(self, **params: Unpack[ListMemoriesParams]) -> ListMemoriesResult:
        """A page of what is remembered in a scope, newest first."""
        return await self.request("listMemories", {**params})

    async def search_memories(self, **params: Unpack[SearchMemoriesParams]) -> SearchMemoriesResult:
        """What is remembered in a scope and fits a question, best first."""
        return await self.request("searchMemories", {**params})

    async def delete_memories(self, **params: Unpack[DeleteMemoriesParams]) -> int:
        """Erase memories of a scope, by `memoryIds` or `all`; how many there were."""
        return (await self.request("deleteMemories", {**params}))["deleted"]

    async def get_state(self, **params: Unpack[StateKeywords]) -> GetStateResult:
        """Look at the sidecar itself; a session has a `get_state` of its own."""
        return await self.request("getState", {**params})

    async def resolve_request(
        self, request_id: str, result: Json = None, *, session_id: str | None = None, **params: Unpack[ResolveKeywords]
    ) -> ResolveRequestResult:
        """Answer a request to the host late, or in another way than by its handler; a session has `answer` for it.

        Args:
            request_id: The request, of `pendingRequests` or of the event `request.opened`.
            result: What its handler would have returned, in the contract's words.
            session_id: Where it was asked.
            params: `error` in place of a result; what the run that goes on is to be given.
        """
        named = {"result": result, "sessionId": session_id}
        given = {key: value for key, value in named.items() if value is not None}
        return await self.request("resolveRequest", {**params, **given, "requestId": request_id})

    async def list_tools(self, session_id: str | None = None) -> ListToolsResult:
        """The tools of a session; without one, those that are registered in the sidecar."""
        return await self.request("listTools", _of(session_id))

    async def list_approval_rules(self, session_id: str | None = None) -> ListApprovalRulesResult:
        """The standing rules of approval: those that count always, and those of a session."""
        return await self.request("listApprovalRules", _of(session_id))

    async def revoke_approval_rule(self, rule_id: str, *, session_id: str | None = None) -> None:
        """Forget a standing rule; harmless if there is none."""
        await self.request("revokeApprovalRule", {**_of(session_id), "ruleId": rule_id})


def _of(session_id: str | None) -> JsonObject:
    return {} if session_id is None else {"sessionId": session_id}
