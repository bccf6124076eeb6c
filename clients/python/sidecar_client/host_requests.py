"""Answers what the sidecar asks of its host: finds the tool, the provider or the person. Speaks no JSON-RPC."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from .calling import call
from .consent import outcome_of
from .errors import INVALID_PARAMS, RpcError
from .handlers import RequestHandler, features_of
from .host import Host
from .host_tools import AnyTool, FunctionTool, result_of
from .types import (
    AfterRunParams,
    AfterRunResult,
    ApprovalOutcome,
    BeforeRunParams,
    BeforeRunResult,
    CallToolParams,
    CallToolResult,
    ElicitParams,
    ElicitResult,
    HostTool,
    Json,
    JsonObject,
    PendingRequest,
    RequestApprovalParams,
)

_NO_TOOLS: Final = "the sidecar was not told that this host has tools: give `start` a Host with `tools`, if only `()`"


class HostRequests:
    """One host's answers, for all of its sessions.

    Args:
        host: What there is to answer with.
        handlers: Method → what answers it; these come before the host.
    """

    def __init__(self, host: Host, handlers: Mapping[str, RequestHandler]) -> None:
        self._host = host
        self._own = handlers
        self._tools = {tool.name: tool for tool in host.tools or ()}
        self._of_session: dict[str, dict[str, AnyTool]] = {}

    @property
    def handlers(self) -> dict[str, RequestHandler]:
        """What answers each method that can be answered."""
        there = {
            "host/callTool": (self._host.tools is not None, self._call_tool),
            "host/beforeRun": (bool(self._host.providers), self._before_run),
            "host/afterRun": (bool(self._host.providers), self._after_run),
            "host/requestApproval": (self._host.approve is not None, self._approve),
            "host/elicit": (self._host.elicit is not None, self._elicit),
        }
        return {**{method: answer for method, (given, answer) in there.items() if given}, **self._own}

    @property
    def features(self) -> JsonObject:
        """What `initialize` tells the sidecar of it."""
        features = features_of(self.handlers)
        if self._host.elicit is not None and "host/elicit" not in self._own:
            features["elicitation"] = {mode: {} for mode in self._host.elicit_modes}
        return features

    @contextmanager
    def serving(
        self, session_id: str | None, tools: Sequence[AnyTool | HostTool] | None
    ) -> Generator[Callable[[str], None], None, None]:
        """While a session is opened with these tools; call what this gives with the session's id.

        A session whose id is known answers from the beginning, because calls may come right behind the answer.

        Raises:
            ValueError: The sidecar was not told that this host has tools.
        """
        own = {tool.name: tool for tool in tools or () if isinstance(tool, FunctionTool)}
        if own and "host/callTool" not in self.handlers:
            raise ValueError(_NO_TOOLS)
        before = self._of_session.get(session_id or "", {})
        given = tools is not None

        def opened(its_id: str) -> None:
            if given:
                self._of_session[its_id] = own

        if session_id is not None:
            opened(session_id)
        try:
            yield opened
        except BaseException:
            if session_id is not None:
                self._of_session[session_id] = before
            raise

    def closed(self, session_id: str) -> None:
        """A session is open no longer; harmless if it was not."""
        self._of_session.pop(session_id, None)

    async def _call_tool(self, params: CallToolParams) -> CallToolResult:
        name = params["name"]
        tool = self._of_session.get(params["sessionId"], {}).get(name) or self._tools.get(name)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"this host has no tool {name!r}")
        return await tool.answer(params)

    async def _before_run(self, params: BeforeRunParams) -> BeforeRunResult:
        return await self._hook("before_run", params)

    async def _after_run(self, params: AfterRunParams) -> AfterRunResult:
        return await self._hook("after_run", params)

    async def _hook(self, name: str, params: BeforeRunParams | AfterRunParams) -> Any:
        provider = self._host.providers.get(params["sourceId"])
        if provider is None:
            raise RpcError(INVALID_PARAMS, f"this host has no provider {params['sourceId']!r}")
        hook = getattr(provider, name, None)
        return {} if hook is None else await call(hook, params) or {}

    async def _approve(self, params: RequestApprovalParams) -> ApprovalOutcome:
        answer = None if self._host.approve is None else await call(self._host.approve, params)
        return outcome_of(params["options"], answer)

    async def _elicit(self, params: ElicitParams) -> ElicitResult:
        answer = None if self._host.elicit is None else await call(self._host.elicit, params)
        return answer or {"action": "cancel"}


def declarations(tools: Sequence[AnyTool | HostTool]) -> list[HostTool]:
    """What the sidecar is told of tools."""
    return [tool.declaration if isinstance(tool, FunctionTool) else tool for tool in tools]


def late_result(pending: PendingRequest, answer: Json) -> JsonObject:
    """The result that the request itself would have been answered with.

    Raises:
        ValueError: The request is an approval, and offers no such option.
        TypeError: It is a tool's call, and this is no result of one.
    """
    match pending["kind"]:
        case "approval":
            return {**outcome_of(pending["payload"]["options"], answer)}
        case "elicitation":
            return answer or {"action": "cancel"}
        case "hostTool":
            return {**result_of(answer)}
        case _:
            return answer or {}
