"""The methods of ACP, carried out by a sidecar: params and results are translated here. Knows no bytes."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, cast

from acp.meta import AGENT_METHODS, PROTOCOL_VERSION
from acp.schema import (
    CancelNotification,
    CloseSessionRequest,
    InitializeRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ResumeSessionRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
)

from protocol.base import Json, JsonObject
from protocol.version import VERSION
from sidecar.errors import InvalidParams, InvalidRequest
from sidecar.telemetry import LOGGER
from sidecar_client import RpcError, Run, RunEvent, RunResult, Session, SidecarClient
from sidecar_client.errors import METHOD_NOT_FOUND
from sidecar_client.types import CreateKeywords, PendingRequest, SessionInfo

from .asking import Asking
from .checked import Handler, as_object, checked, member, validated
from .peer import Peer, Reply
from .settings import MODE, config_options, modes, setting
from .view import SessionView, notice

PROMPT: Final = AGENT_METHODS["session_prompt"]
OURS: Final = ("_sidecar/getState", "_sidecar/getEvents", "_sidecar/explainRun")
"""Methods of the sidecar itself, unchanged; what stands behind the slash is their name there."""
STOP_REASONS: Final = {
    "endTurn": "end_turn",
    "maxTokens": "max_tokens",
    "maxTurns": "max_turn_requests",
    "refusal": "refusal",
    "contentFilter": "refusal",
    "cancelled": "cancelled",
    "timeout": "cancelled",
    "interrupted": "cancelled",
    "inputRequired": "end_turn",
}
_NO_MCP: Final = "this build has no MCP: the session works without the client's MCP servers"


class Front:
    """Answers one ACP client; see `Handlers` in `peer`.

    Args:
        peer: Sends to the client.
        stack: Holds the sidecar from `initialize` on; who closes it ends the sidecar.
        arguments: What follows `agent-sidecar serve`.
        new_session: Params of `createSession` that every new session has.
    """

    def __init__(
        self, peer: Peer, stack: AsyncExitStack, arguments: Sequence[str], new_session: CreateKeywords
    ) -> None:
        self._peer = peer
        self._stack = stack
        self._arguments = arguments
        self._new = new_session
        self._asking = Asking(peer.ask, self._call_id)
        self._notices = False
        self._started: asyncio.Future[SidecarClient] | None = None
        self._views: dict[str, SessionView] = {}
        self._running: dict[str, set[Run]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._handlers: dict[str, Handler] = {
            AGENT_METHODS["initialize"]: self._initialize,
            AGENT_METHODS["session_new"]: checked(NewSessionRequest, self._new_session),
            AGENT_METHODS["session_load"]: checked(LoadSessionRequest, self._load),
            AGENT_METHODS["session_resume"]: checked(ResumeSessionRequest, self._resume),
            AGENT_METHODS["session_list"]: checked(ListSessionsRequest, self._list),
            AGENT_METHODS["session_close"]: checked(CloseSessionRequest, self._close),
            AGENT_METHODS["session_delete"]: checked(CloseSessionRequest, self._delete),
            AGENT_METHODS["session_set_mode"]: checked(SetSessionModeRequest, self._set_mode),
            AGENT_METHODS["session_set_config_option"]: checked(SetSessionConfigOptionSelectRequest, self._set_option),
            PROMPT: checked(PromptRequest, self._prompt),
            **{name: self._pass_on(name.partition("/")[2]) for name in OURS},
        }

    async def request(self, method: str, params: Json) -> Json | Reply:
        """Answer one request.

        Raises:
            SidecarError: It is refused here.
            RpcError: The sidecar refused it, or a run failed.
            SidecarDied: The sidecar has ended.
        """
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"this agent has no method {method!r}", {"kind": "methodNotFound"})
        return await handler(params)

    def notified(self, method: str, params: Json) -> None:
        """Take a notification; what is unknown or has the wrong shape is ignored."""
        if method != AGENT_METHODS["session_cancel"]:
            return
        try:
            session_id = validated(CancelNotification, params).session_id
        except InvalidParams as error:
            LOGGER.warning("%s was ignored: %s", method, error.message)
            return
        running = self._running.get(session_id, set())
        for run in running:
            run.cancel()
        view = self._views.get(session_id)
        if not running and view is not None and view.active_run is not None:
            self._spawn(self._cancel(session_id, view.active_run))

    # ---- starting -------------------------------------------------------------------------------------------------

    async def _initialize(self, params: Json) -> Json:
        request = validated(InitializeRequest, params)
        if self._started is not None:
            raise InvalidRequest("the connection is initialized already")
        self._started = asyncio.get_running_loop().create_future()
        # The package's types do not know of notices.
        self._notices = isinstance(member(params, "clientCapabilities", "session", "notices"), dict)
        try:
            client = await self._stack.enter_async_context(
                SidecarClient.start(
                    self._arguments,
                    host=self._asking.host(request.client_capabilities),
                    reconnect=True,
                    on_stderr=_pass_on_log,
                )
            )
        except BaseException:
            self._started.set_exception(InvalidRequest("initialize failed; send it again"))
            self._started.exception()  # marks it as seen: perhaps nobody waits
            self._started = None
            raise
        client.on_event(self._on_event)
        client.on_notification("session/updated", self._on_updated)
        self._started.set_result(client)
        return _introduction()

    async def _client(self) -> SidecarClient:
        """The sidecar. Waits for nothing if it is there: what is asked next is asked in the order of arrival."""
        if self._started is None:
            raise InvalidRequest("send initialize first")
        return await asyncio.shield(self._started)

    # ---- sessions -------------------------------------------------------------------------------------------------

    async def _new_session(self, request: NewSessionRequest) -> Reply:
        client = await self._client()
        params: CreateKeywords = {**self._new, "cwd": request.cwd}
        if request.additional_directories:
            params["additionalDirectories"] = request.additional_directories
        session = await client.create_session(**params)
        self._views[session.session_id] = SessionView(notices=self._notices)
        warnings = [_NO_MCP] if request.mcp_servers else []
        return self._opened(session, warnings, {"sessionId": session.session_id})

    async def _load(self, request: LoadSessionRequest) -> Reply:
        client = await self._client()
        before = self._views.get(request.session_id)
        view = self._views[request.session_id] = SessionView(notices=self._notices, replaying=True)
        try:
            session = await client.resume_session(request.session_id, replayFrom={"type": "start"})
        except BaseException:
            self._restore(request.session_id, before)
            raise
        await view.replayed(session.opened["lastSeq"])
        return self._opened(session, _differences(request, session.info))

    async def _resume(self, request: ResumeSessionRequest) -> Reply:
        client = await self._client()
        before = self._views.get(request.session_id)
        self._views[request.session_id] = before or SessionView(notices=self._notices)
        try:
            session = await client.resume_session(request.session_id)
        except BaseException:
            self._restore(request.session_id, before)
            raise
        return self._opened(session, _differences(request, session.info))

    async def _list(self, request: ListSessionsRequest) -> Json:
        client = await self._client()
        given = {"cwd": request.cwd, "cursor": request.cursor}
        page = await client.request("listSessions", {key: value for key, value in given.items() if value is not None})
        listed: JsonObject = {"sessions": [_session_info(info) for info in page["sessions"]]}
        if page.get("nextCursor") is not None:
            listed["nextCursor"] = page["nextCursor"]
        return listed

    async def _close(self, request: CloseSessionRequest) -> Json:
        client = await self._client()
        await client.request("closeSession", {"sessionId": request.session_id})
        self._forget(client, request.session_id)
        return {}

    async def _delete(self, request: CloseSessionRequest) -> Json:
        client = await self._client()
        await client.delete_session(request.session_id)
        self._forget(client, request.session_id)
        return {}

    async def _set_mode(self, request: SetSessionModeRequest) -> Json:
        await self._update(request.session_id, MODE, request.mode_id)
        return {}

    async def _set_option(self, request: SetSessionConfigOptionSelectRequest) -> Json:
        return {"configOptions": await self._update(request.session_id, request.config_id, setting(request.value))}

    async def _update(self, session_id: str, option: str, value: Json) -> list[JsonObject]:
        client = await self._client()
        answer = await client.request("updateSession", {"sessionId": session_id, "configOptions": {option: value}})
        return config_options(answer["configOptions"])

    def _opened(self, session: Session, warnings: list[str], more: JsonObject | None = None) -> Reply:
        """The answer of the three ways to open a session; the warnings stand in it and, as notices, behind it."""
        for warning in warnings:
            LOGGER.warning("%s: %s", session.session_id, warning)
        options = session.opened["configOptions"]
        result: JsonObject = {**(more or {}), "configOptions": config_options(options)}
        if (known := modes(options)) is not None:
            result["modes"] = known
        told = {"warnings": warnings, "truncated": session.opened.get("truncated", False)}
        if kept := {key: value for key, value in told.items() if value}:
            result["_meta"] = {"sidecar": kept}

        def then() -> None:
            for warning in warnings if self._notices else ():
                self._show(session.session_id, notice(warning))
            self._ask_again(session.session_id, session.pending_requests)

        return Reply(result, then)

    def _restore(self, session_id: str, view: SessionView | None) -> None:
        if view is None:
            self._views.pop(session_id, None)
        else:
            self._views[session_id] = view

    def _forget(self, client: SidecarClient, session_id: str) -> None:
        client.session_closed(session_id)
        self._views.pop(session_id, None)

    # ---- runs -----------------------------------------------------------------------------------------------------

    async def _prompt(self, request: PromptRequest) -> Reply:
        client = await self._client()
        blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in request.prompt]
        run = client.start_run({"sessionId": request.session_id, "input": blocks})
        running = self._running.setdefault(request.session_id, set())
        running.add(run)
        try:
            result = await self._seen_through(run)
        finally:
            running.discard(run)
            if not running:
                self._running.pop(request.session_id, None)
        told: JsonObject = {key: result[key] for key in ("runId", "stopReason", "usage")}
        if result["warnings"]:
            told["warnings"] = [warning["message"] for warning in result["warnings"]]
        answer = {"stopReason": STOP_REASONS.get(result["stopReason"], "end_turn"), "_meta": {"sidecar": told}}
        return Reply(answer, lambda: self._ask_again(request.session_id, result.get("pendingRequests", [])))

    async def _seen_through(self, run: Run) -> RunResult:
        """Wait for a run's end. Whoever takes the prompt back gets the result of the cancelled run.

        Its events go to the client by `_on_event`. They are read here as well, at the client's pace: where it is
        behind, the run has to wait.
        """
        while True:
            try:
                async for _ in run:
                    await self._peer.drain()
                return await run.result()
            except asyncio.CancelledError:
                run.cancel()

    async def _cancel(self, session_id: str, run_id: str) -> None:
        """Stop a run that no prompt began: it goes on after consent that was given late."""
        client = await self._client()
        await client.request("cancelRun", {"sessionId": session_id, "runId": run_id})

    def _ask_again(self, session_id: str, pending: Sequence[PendingRequest]) -> None:
        """Ask for the consent that runs which have ended wait for."""
        for request in pending:
            if request["kind"] == "approval":
                self._spawn(self._ask_late(session_id, request))

    async def _ask_late(self, session_id: str, pending: PendingRequest) -> None:
        """Where it is given or refused, a new run goes on; where nobody decides, the call waits on."""
        client = await self._client()
        try:
            outcome = await self._asking.approve(pending["payload"])
            if outcome["outcome"] == "selected":
                await client.resolve_request(pending["requestId"], outcome, session_id=session_id)
        except RpcError as error:
            LOGGER.warning("%s: consent could not be asked for: %s", session_id, error.message)

    def _pass_on(self, method: str) -> Handler:
        async def ask(params: Json) -> Json:
            client = await self._client()
            return await client.request(method, as_object(params))

        return ask

    # ---- what the sidecar tells -----------------------------------------------------------------------------------

    def _on_event(self, event: RunEvent) -> None:
        view = self._views.get(event["sessionId"])
        for update in view.updates(event) if view is not None else ():
            self._show(event["sessionId"], update)

    def _on_updated(self, params: JsonObject) -> None:
        info = cast("SessionInfo", params["session"])
        if info["sessionId"] in self._views:
            shown = {"sessionUpdate": "session_info_update", "title": info.get("title"), "updatedAt": info["updatedAt"]}
            self._show(info["sessionId"], shown)

    def _show(self, session_id: str, update: JsonObject) -> None:
        self._peer.notify("session/update", {"sessionId": session_id, "update": update})

    def _call_id(self, session_id: str, run_id: str, call_id: str) -> str:
        view = self._views.get(session_id) or SessionView()
        return view.call_id(run_id, call_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _introduction() -> JsonObject:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "agent-sidecar", "title": "agent-sidecar", "version": VERSION},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            "_meta": {"sidecar": {"methods": list(OURS)}},
        },
        "authMethods": [],
    }


def _differences(request: LoadSessionRequest | ResumeSessionRequest, info: SessionInfo) -> list[str]:
    """What of a request to open a stored session is not followed."""
    warnings = [_NO_MCP] if request.mcp_servers else []
    if info.get("cwd") not in (None, request.cwd):
        warnings.append("the session stays in the folder that it was made in")
    return warnings


def _session_info(info: SessionInfo) -> JsonObject:
    shown: JsonObject = {"sessionId": info["sessionId"], "cwd": info.get("cwd", "/"), "updatedAt": info["updatedAt"]}
    return {**shown, "title": info["title"]} if "title" in info else shown


def _pass_on_log(line: str) -> None:
    """The sidecar's log is ours; it has its form already."""
    sys.stderr.write(f"{line}\n")
