"""The host, as one run asks it: each question told and stored, asked, and closed when it is answered or given up."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from protocol.base import Json, JsonObject, WireModel
from protocol.errors import KINDS
from protocol.host import CallToolResult, EditorContextResult, ElicitResult
from protocol.messages import TextBlock
from protocol.methods import HOST_AFTER_RUN, HOST_BEFORE_RUN, HOST_CALL_TOOL, HOST_EDITOR_CONTEXT, HOST_ELICIT
from protocol.sessions import RequestKind
from providers.api.host import Elicited, HostError, HostTimeout, HostToolCall, HostUnavailable
from providers.api.json_schema import schema_problem, value_problem
from providers.api.tool_result import ToolResult
from sidecar.agents.sink import Draft, RequestNote
from sidecar.telemetry import LOGGER

from .host_requests import HostRequests, first_answer, new_pending
from .outlet import AskFailed, Outlet
from .tickets import StopKind
from .turn_sink import TurnSink

R = TypeVar("R", bound=WireModel)

_MAY_BE_A_RESULT: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})
EDITOR_S: Final = 5.0
"""So long a host may take to tell of its editor."""

_NOT_KNOWN: Final = KINDS["methodNotFound"].code
_TOO_LARGE: Final = KINDS["messageTooLarge"].code


@dataclass(frozen=True, slots=True)
class _Question:
    kind: RequestKind
    method: str
    shown: JsonObject
    """What events and lists say of it."""
    hidden: JsonObject
    """What only the host gets."""
    timeout_ms: int | None = None
    progress: Callable[[str], None] | None = None


class RunHost:
    """What one run may ask. It is `providers.api.host.Host`."""

    def __init__(
        self,
        requests: HostRequests,
        sink: TurnSink,
        outlet: Outlet,
        session_id: str,
        run_id: str,
        why_stopped: Callable[[], StopKind | None],
    ) -> None:
        self._requests = requests
        self._sink = sink
        self._outlet = outlet
        self._session_id = session_id
        self._run_id = run_id
        self._why_stopped = why_stopped

    async def call_tool(self, call: HostToolCall) -> ToolResult:
        """Have a tool carried out. See `providers.api.host.Host`."""
        shown: JsonObject = {"callId": call.call_id, "name": call.name, "arguments": call.arguments}
        if call.timeout_ms is not None:
            shown["deadlineMs"] = call.timeout_ms
        hidden: JsonObject = {"kwargs": call.kwargs} if call.kwargs else {}
        question = _Question("hostTool", HOST_CALL_TOOL.name, shown, hidden, call.timeout_ms, call.progress)
        given = await self._ask(question, CallToolResult)
        content = (TextBlock(text=given.content),) if isinstance(given.content, str) else given.content
        if odd := next((block.type for block in content if block.type not in _MAY_BE_A_RESULT), None):
            raise HostError(f"the host's answer has the wrong shape: content: a result holds no {odd[:100]!r}")
        return ToolResult(content, given.structured_content, is_error=bool(given.is_error))

    async def hook(self, phase: Literal["beforeRun", "afterRun"], shown: JsonObject, params: JsonObject) -> JsonObject:
        """Have a provider of the host's take part. See `providers.api.host.Host`."""
        method = HOST_BEFORE_RUN if phase == "beforeRun" else HOST_AFTER_RUN
        question = _Question("hostProvider", method.name, {**shown, "phase": phase}, params)
        return (await self._ask(question, method.result)).wire()

    async def editor_context(self, kinds: Sequence[str]) -> JsonObject:
        """What the user has before them in the editor. See `providers.api.host.Host`."""
        if not self._outlet.host.editor_context:
            return {}
        params: JsonObject = {"sessionId": self._session_id, "runId": self._run_id, "kinds": list(kinds)}
        try:
            answer = await self._outlet.ask(HOST_EDITOR_CONTEXT.name, params, timeout=EDITOR_S)
            return _read(answer, EditorContextResult).wire()
        except (AskFailed, TimeoutError, HostError) as error:
            LOGGER.info("the host told nothing of its editor: %s", type(error).__name__)
            return {}

    async def elicit(self, message: str, *, schema: JsonObject | None = None, url: str | None = None) -> Elicited:
        """Ask a person a question. See `providers.api.host.Host`."""
        if schema is not None and (problem := schema_problem(schema)) is not None:
            raise ValueError(f"the form's schema is none: {problem}")
        host = self._outlet.host
        if not (host.elicit_form if schema is not None else host.elicit_url):
            return Elicited("decline")
        shown: JsonObject = {"mode": "form" if schema is not None else "url", "message": message}
        shown |= {"requestedSchema": schema} if schema is not None else {"url": url}
        try:
            given = await self._ask(_Question("elicitation", HOST_ELICIT.name, shown, {}), ElicitResult)
        except HostError:
            return Elicited("decline")
        if given.action != "accept":
            return Elicited(given.action)
        if schema is None:
            return Elicited("accept")
        if await asyncio.to_thread(value_problem, schema, given.content) is not None:
            return Elicited("decline")
        return Elicited("accept", given.content)

    async def _ask(self, question: _Question, result: type[R]) -> R:
        """Ask one question, from its first event to its last.

        Raises:
            HostError: there is no answer, or none of the right shape.
        """
        shown = {"sessionId": self._session_id, "runId": self._run_id, **question.shown}
        pending = new_pending(question.kind, self._run_id, shown, question.timeout_ms)
        request = self._requests.open(pending, question.progress)
        outcome, by = "failed", "client"
        opened = False
        try:
            body = pending.wire()
            data = {key: body[key] for key in ("requestId", "kind", "payload", "deadline") if key in body}
            note = RequestNote(pending.request_id, body)
            opened = True  # from here on it may be stored, at once or later, even if this is cancelled
            if not await self._sink.commit(Draft("request.opened", data, requests=(note,))):
                by = "cancel"
                raise HostUnavailable("the host was not asked: the request could not be recorded")
            params = {name: value for name, value in pending.payload.items() if name != "phase"} | question.hidden
            seconds = question.timeout_ms / 1000 if question.timeout_ms is not None else None
            taken = partial(self._requests.take, pending.request_id)
            asked = asyncio.create_task(self._outlet.ask(question.method, params, timeout=seconds, answered=taken))
            answer = _read(await first_answer(request, asked), result)
            outcome = answer.action if isinstance(answer, ElicitResult) else "completed"
        except TimeoutError:
            by = "timeout"
            raise HostTimeout(f"the host has not answered within {question.timeout_ms} ms") from None
        except AskFailed as error:
            by = "disconnect" if error.has_gone else "client"
            raise _failure(error) from None
        except asyncio.CancelledError:
            stop = self._why_stopped()
            by = "disconnect" if stop == "interrupted" else "cancel"
            if stop is None and question.kind == "hostProvider":  # its hook's time is over
                by = "timeout"
            raise
        finally:
            self._requests.close(pending.request_id)
            if opened:
                data: JsonObject = {"requestId": pending.request_id, "outcome": outcome, "by": by}
                closing = (RequestNote(pending.request_id),)
                self._sink.stage(Draft("request.resolved", data, requests=closing, stored=request.stored))
                # A tool's result is stored with that event; other answers have no place of their own to be stored in.
                if request.is_answered and question.kind != "hostTool":
                    await self._sink.commit()
        return answer


def _read(answer: Json, result: type[R]) -> R:
    try:
        return result.model_validate(answer if answer is not None else {})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        what = f"{where}: {fault['msg']}" if where else "it is no object"
        raise HostError(f"the host's answer has the wrong shape: {what}") from None


def _failure(error: AskFailed) -> HostError:
    if error.has_gone:
        return HostUnavailable("the host has gone")
    if error.code == _NOT_KNOWN:
        return HostUnavailable("the host does not serve this")
    if error.code == _TOO_LARGE:
        return HostError(f"the host was not asked: {error}")
    return HostError(f"the host failed: {str(error)[:1000]}")
