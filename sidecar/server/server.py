"""Every message from the client goes through here once, and every request is answered here, exactly once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, cast

from protocol.base import Json, JsonObject
from protocol.lifecycle import CancelParams
from protocol.methods import CANCEL_RUN
from protocol.runs import RunParams
from providers.api.clean_text import clean_text
from sidecar.config.limits import Limits
from sidecar.crash_points import reached
from sidecar.errors import (
    InvalidRequest,
    MessageTooLarge,
    MethodNotFound,
    NotInitialized,
    Overloaded,
    ParseError,
    RequestCancelled,
    ServerCancelled,
    SidecarError,
)
from sidecar.handlers.services import Call, Reply, Services
from sidecar.handlers.table import TABLE, Binding
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.tickets import RunTicket
from sidecar.stores.base import StoreError
from sidecar.telemetry import LOGGER, log_failure
from sidecar.transport.decode import DecodeError, decode, has_nul
from sidecar.transport.framing import Fault
from sidecar.transport.peek import HEAD_BYTES, peek

from .envelope import (
    BadEnvelope,
    Notification,
    Request,
    RequestId,
    Response,
    classify,
    error_answer,
    result_answer,
)
from .inside import InsideRequests
from .lanes import Lanes, Pass
from .neighbours import LanguageServer, Lifecycle, Wire
from .reverse import ReverseRequests
from .trace import Trace, log_refusal
from .validation import as_object, clean_nul, validate

PROGRESS: Final = "$/progress"
PROGRESS_CANCEL: Final = "window/workDoneProgress/cancel"

_OTHER_WAYS: Final = {
    "exportSession": "use `agent-sidecar sessions export --file`, which has no limit",
    "explainRun": "ask for one call at a time, with `call`",
    "run": "the run itself is done: read what it said with getHistory, by pages",
}
"""What to do about an answer that is too long, where there are no pages."""

SETTLE_S: Final = 1.0
"""After `shutdown`, requests get this long to end by themselves."""


@dataclass(slots=True, eq=False)
class _Pending:
    """A request that has not been answered."""

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


Work = Callable[[_Pending], Awaitable[Json | Reply]]
"""What is done for a request: its result, or a reply with something to send right after it."""


class Server:
    """Receives messages; see `sidecar.transport.connection.Receiver`."""

    def __init__(self, wire: Wire, language_server: LanguageServer, lifecycle: Lifecycle, *, limits: Limits) -> None:
        self._wire = wire
        self._language_server = language_server
        self._lifecycle = lifecycle
        self._limits = limits
        self._services: Services | None = None
        self._unanswered: dict[RequestId, _Pending] = {}
        self._working: set[_Pending] = set()  # also what still has something to send after its answer
        self._lanes = Lanes()
        self._idle = asyncio.Event()
        self._idle.set()
        self._shutting_down = False
        self._trace = Trace(wire.send)
        self.inside: Final = InsideRequests(lambda request: self._admit(request, has_nul=True))
        """For requests that begin in this process."""
        self.reverse: Final = ReverseRequests(wire.send)
        """For requests to the client."""
        self.max_outbound_bytes = 64 << 20
        """Longest answer that the client takes."""

    # ---- what comes in --------------------------------------------------------------------------------------------

    def on_message(self, body: bytes) -> None:
        """One message."""
        try:
            message = classify(decode(body, self._limits.max_json_depth))
        except DecodeError as error:
            self._refuse_unreadable(peek(body[:HEAD_BYTES]).response_id, None, _parse_error(error))
            return
        except BadEnvelope as bad:
            self._refuse_unreadable(bad.id if bad.is_answer else None, bad.id, bad.error)
            return
        if isinstance(message, Request):
            self._on_request(message, has_nul=has_nul(body))
        elif isinstance(message, Notification):
            self._on_notification(message)
        else:
            self.reverse.answer(message)

    def _refuse_unreadable(self, response_id: Json, request_id: RequestId | None, error: SidecarError) -> None:
        """What cannot be read; as the answer to a request of ours, it is one that failed."""
        if self.reverse.is_open(response_id):
            self.reverse.answer(Response(response_id, {"error": error.wire()}))
        else:
            self._refuse(request_id, error)

    def on_fault(self, fault: Fault) -> None:
        """A message that could not be received."""
        if fault.kind == "tooLarge":
            limit = fault.limit or 0
            error = MessageTooLarge(f"the message is longer than {limit} bytes; send less, or in parts", limit)
            if fault.response_id is None:
                self._refuse(fault.request_id, error)
            else:
                self.reverse.answer(Response(fault.response_id, {"error": error.wire()}))
        elif fault.fatal:
            LOGGER.warning("the input ended inside a message: %s", fault.reason)
        else:
            self._refuse(None, _parse_error(fault.reason))

    def on_eof(self) -> None:
        """The client will send nothing more."""
        self.reverse.close()
        self._lifecycle.end_of_input(after_shutdown=self._shutting_down)

    def on_gone(self, why: str) -> None:
        """Nobody will ever read what we send."""
        self.reverse.close()
        self._lifecycle.client_gone(why)

    def already_initialized(self, params: JsonObject, services: Services) -> None:
        """`initialize` was answered before this server was there."""
        self._services = services
        self._trace.set(params.get("trace"))

    # ---- ending ---------------------------------------------------------------------------------------------------

    async def idle(self) -> None:
        """Wait until every request is answered."""
        await self._idle.wait()

    async def settle(self, timeout: float) -> None:
        """Stop runs as interrupted, and give every request up to `timeout` seconds to end; cut what is left."""
        if self._services is not None:
            for ticket in self._services.tickets:
                ticket.cancel("interrupted")
        tasks = {pending.task for pending in self._working if pending.task is not None}
        tasks.discard(asyncio.current_task())
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)
        for pending in list(self._working):
            if pending.method != "shutdown":
                self._fail(pending, ServerCancelled())
                if pending.task is not None:
                    pending.task.cancel()

    # ---- requests -------------------------------------------------------------------------------------------------

    def _on_request(self, request: Request, *, has_nul: bool) -> None:
        self._trace.received(request.method, request.id)
        if request.id in self._unanswered:
            self._refuse(request.id, InvalidRequest("a request with this id is still unanswered; use another id"))
            return
        try:
            self._admit(request, has_nul=has_nul)
        except SidecarError as error:
            self._refuse(request.id, error)

    def _admit(self, request: Request, *, has_nul: bool) -> None:
        if self._shutting_down:
            raise InvalidRequest("the sidecar is shutting down; start a new one")
        if request.method == "initialize":
            self._initialize(request)
            return
        services = self._services
        if services is None:
            raise NotInitialized
        if request.method == "shutdown":
            self._shutting_down = True
            self._start(_Pending(request.id, request.method), self._shutdown)
            return
        # Whatever is in flight may be a run, and each of them can be cancelled.
        most = self._limits.max_in_flight * (2 if request.method == CANCEL_RUN.name else 1)
        if len(self._working) >= most:
            raise Overloaded(f"{most} requests are unanswered already")
        binding = TABLE.get(request.method)
        if binding is None:
            self._admit_other(request)
            return
        if binding.needs_config and services.config_error is not None:
            raise services.config_error
        params = as_object(request.params)
        self._admit_bound(request, binding, clean_nul(params) if has_nul else params, services)

    def _admit_other(self, request: Request) -> None:
        if self._language_server.handles(request.method):
            stop = asyncio.Event()
            pending = _Pending(request.id, request.method, stop=stop)
            self._start(pending, lambda _: self._language_server.request(request.method, request.params, stop))
        else:
            raise MethodNotFound(request.method)

    def _admit_bound(self, request: Request, binding: Binding, raw: JsonObject, services: Services) -> None:
        """Take the request's place in its session's lane, here in the reader: places are in the order of arrival."""
        params = validate(binding.method.params, raw)
        session_id: str | None = getattr(params, "session_id", None)
        creates = binding.creates(params) if binding.creates is not None else None
        ticket: RunTicket | None = None
        lane_of = session_id
        if isinstance(params, RunParams):
            ticket = services.tickets.register(session_id, params.run_id, params.work_done_token)
            if session_id is None and params.run_id is not None:
                lane_of = f"\0{params.run_id}"  # no session's id; the same one-off run may be sent twice
        place = self._lanes.enter(lane_of, binding.lane, creates)
        pending = _Pending(request.id, request.method, place, stoppable=binding.stoppable)
        pending.call = call = Call(
            request_id=request.id,
            raw=raw,
            leave_lane=place.leave,
            answer=lambda result: self._answer(pending, result.wire()),
            ticket=ticket,
        )

        async def answer(_: _Pending) -> Json | Reply:
            await place.wait()
            return await self._handled(binding, params, call, services)

        self._start(pending, answer)

    async def _handled(self, binding: Binding, params: object, call: Call, services: Services) -> Json | Reply:
        result = await binding.handler(params, call, services)
        return result if isinstance(result, Reply) else result.wire()

    def _initialize(self, request: Request) -> None:
        if self._services is not None:
            raise InvalidRequest("initialize was answered already")
        params = as_object(request.params)
        result, self._services = self._lifecycle.initialize(params)
        self._trace.set(params.get("trace"))
        self._wire.send(result_answer(request.id, result))

    async def _shutdown(self, _: _Pending) -> Json:
        await self.settle(SETTLE_S)
        return None

    # ---- the one exit ---------------------------------------------------------------------------------------------

    def _start(self, pending: _Pending, work: Work) -> None:
        self._unanswered[pending.id] = pending
        self._working.add(pending)
        self._idle.clear()
        task = asyncio.create_task(self._serve(pending, work), name=f"{pending.method} {pending.id}")
        pending.task = task
        # A task that is cancelled before its first step never runs: it is finished here.
        task.add_done_callback(lambda _: self._finish(pending))

    async def _serve(self, pending: _Pending, work: Work) -> None:
        try:
            result = await work(pending)
            if isinstance(result, Reply):
                self._answer(pending, result.result.wire())
                await result.then()
            else:
                self._answer(pending, result)
        except asyncio.CancelledError:
            self._fail(pending, ServerCancelled() if self._shutting_down else RequestCancelled())
        except SidecarError as error:
            self._fail(pending, error)
        except StoreError as error:
            session_id = pending.call.raw.get("sessionId") if pending.call is not None else None
            self._fail(pending, storage_error(error, str(session_id or "")))
        except Exception as error:
            internal = SidecarError("internal error; the log on stderr has it under this errorId")
            log_failure(f"request {pending.method}", error, internal.error_id)
            self._fail(pending, internal)
        finally:
            self._finish(pending)

    def _answer(self, pending: _Pending, result: Json) -> None:
        if InsideRequests.owns(pending.id):
            self.inside.answer(pending.id, result)
            self._send(pending, None)
            return
        body = result_answer(pending.id, result)
        if len(body) > self.max_outbound_bytes:
            limit = self.max_outbound_bytes
            how = _OTHER_WAYS.get(pending.method, "ask for pages")
            self._fail(pending, MessageTooLarge(f"the answer is longer than {limit} bytes; {how}", limit))
        else:
            self._send(pending, body)

    def _fail(self, pending: _Pending, error: SidecarError) -> None:
        if InsideRequests.owns(pending.id):
            self.inside.answer(pending.id, error)
            self._send(pending, None)
        else:
            log_refusal(pending.method, error)
            self._send(pending, error_answer(pending.id, error), error.kind)

    def _send(self, pending: _Pending, body: bytes | None, failure: str | None = None) -> None:
        if not pending.answered:
            pending.answered = True
            del self._unanswered[pending.id]
            if body is not None:
                self._trace.answered(pending.method, pending.id, pending.since, failure)
                reached("answer.before")
                self._wire.send(body)
                reached("answer.after")

    def _refuse(self, request_id: RequestId | None, error: SidecarError) -> None:
        log_refusal("a message", error)
        self._wire.send(error_answer(request_id, error))

    def _finish(self, pending: _Pending) -> None:
        """Free what the request held, in the step that answered it: its client may have read that before our next."""
        if pending not in self._working:
            return
        if not pending.answered:
            self._fail(pending, ServerCancelled() if self._shutting_down else RequestCancelled())
        pending.place.leave()
        if pending.call is not None and pending.call.ticket is not None and self._services is not None:
            self._services.tickets.forget(pending.call.ticket)
        self._working.discard(pending)
        if not self._working:
            self._idle.set()

    # ---- notifications --------------------------------------------------------------------------------------------

    def _on_notification(self, message: Notification) -> None:
        if message.method == "exit":
            self._lifecycle.exit(after_shutdown=self._shutting_down)
        elif message.method == "$/cancelRequest":
            self._cancel(message.params)
        elif message.method == "$/setTrace":
            self._trace.set(_member(message.params, "value"))
            self._language_server.notify(message.method, message.params)
        elif self._services is None:
            LOGGER.info("a notification before initialize was ignored")
        elif message.method == "workspace/didChangeConfiguration":
            self._lifecycle.configuration_changed()
        elif (message.method == PROGRESS and self._progressed(message.params, self._services)) or (
            message.method == PROGRESS_CANCEL and self._cancelled_progress(message.params, self._services)
        ):
            return
        elif self._language_server.handles(message.method):
            self._language_server.notify(message.method, message.params)
        # Whatever else it is: a notification is never answered.

    def _progressed(self, params: Json, services: Services) -> bool:
        """Pass on how a request to the client gets on: `token` is its `requestId`; whether it can be one's."""
        token, value = _member(params, "token"), _member(params, "value")
        text = value if isinstance(value, str) else _member(value, "message")
        if not (isinstance(token, str) and isinstance(text, str)):
            return False
        services.sessions.tell_progress(token, clean_text(text))
        return True

    def _cancelled_progress(self, params: Json, services: Services) -> bool:
        """Stop the run with that work-done token; whether it is a run's."""
        token = _member(params, "token")
        return isinstance(token, str | int) and services.tickets.cancel_token(token)

    def _cancel(self, params: Json) -> None:
        try:
            cancel = validate(CancelParams, as_object(params))
        except SidecarError:
            return
        pending = self._unanswered.get(cancel.id)
        if pending is None or pending.task is None:
            return
        ticket = pending.call.ticket if pending.call is not None else None
        if ticket is not None:
            ticket.cancel()
        elif pending.stop is not None:
            pending.stop.set()
        elif pending.stoppable or not pending.place.started:
            pending.task.cancel()


def _member(params: Json, name: str) -> Json:
    """A member of a notification's params, which may be anything."""
    return cast("JsonObject", params).get(name) if isinstance(params, dict) else None


def _parse_error(why: object) -> ParseError:
    return ParseError(f"the message is no JSON: {why}")
