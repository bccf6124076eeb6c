"""Every message from the client goes through here once, and every request is answered here, exactly once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from protocol.base import Json, JsonObject
from protocol.lifecycle import CancelParams
from protocol.methods import CANCEL_RUN
from protocol.runs import RunParams
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
from .lanes import Lanes
from .neighbours import LanguageServer, Lifecycle, Wire
from .pending import Pending, done
from .progress import PROGRESS, PROGRESS_CANCEL, member, progress_cancelled, progressed
from .reverse import ReverseRequests
from .trace import Trace, log_refusal
from .validation import as_object, clean_nul, validate

_OTHER_WAYS: Final = {
    "exportSession": "use `agent-sidecar sessions export --file`, which has no limit",
    "explainRun": "ask for one call at a time, with `call`",
    "run": "the run itself is done: read what it said with getHistory, by pages",
}
"""What to do about an answer that is too long, where there are no pages."""

SETTLE_S: Final = 1.0
"""After `shutdown`, requests get this long to end by themselves."""


Work = Callable[[Pending], Awaitable[Json | Reply]]
"""What is done for a request: its result, or a reply with something to send right after it."""


class Server:
    """Receives messages; see `sidecar.transport.connection.Receiver`."""

    def __init__(self, wire: Wire, language_server: LanguageServer, lifecycle: Lifecycle, *, limits: Limits) -> None:
        self._wire = wire
        self._language_server = language_server
        self._lifecycle = lifecycle
        self._limits = limits
        self._services: Services | None = None
        self._unanswered: dict[RequestId, Pending] = {}
        self._working: set[Pending] = set()  # also what still has something to send after its answer
        self._lanes = Lanes()
        self._idle = asyncio.Event()
        self._idle.set()
        self._shutting_down = False
        self._is_ending = False
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

    def stop_accepting(self) -> None:
        """The process is ending, perhaps without a `shutdown`: refuse every other request from now on."""
        self._is_ending = True

    async def settle(self, timeout: float) -> None:
        """Stop runs as interrupted, and let every request end; cut what is left, also where the caller gives up.

        Args:
            timeout: Seconds that runs get, and what follows an answer; what waits for its answer gets `SETTLE_S`.
        """
        if self._services is not None:
            self._services.tickets.stop_all()
        own = asyncio.current_task()
        working = [pending for pending in self._working if pending.task is not own and pending.method != "shutdown"]
        try:
            await done(working, min(timeout, SETTLE_S))
            self._cut(pending for pending in working if not (pending.answered or pending.is_run))
            await done(working, timeout - SETTLE_S)
        finally:
            self._cut(working)

    def _cut(self, working: Iterable[Pending]) -> None:
        for pending in working:
            if pending in self._working and pending.task is not None:
                if not pending.answered:
                    self._fail(pending, ServerCancelled())
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
        if self._is_ending and request.method != "shutdown":
            raise ServerCancelled
        if request.method == "initialize":
            self._initialize(request)
            return
        services = self._services
        if services is None:
            raise NotInitialized
        if request.method == "shutdown":
            self._shutting_down = self._is_ending = True
            self._start(Pending(request.id, request.method), self._shutdown)
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
            pending = Pending(request.id, request.method, stop=stop)
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
        pending = Pending(request.id, request.method, place, stoppable=binding.stoppable)
        pending.call = call = Call(
            request_id=request.id,
            raw=raw,
            leave_lane=place.leave,
            answer=lambda result: self._answer(pending, result.wire()),
            ticket=ticket,
        )

        async def answer(_: Pending) -> Json | Reply:
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

    async def _shutdown(self, _: Pending) -> Json:
        await self.settle(SETTLE_S)
        return None

    # ---- the one exit ---------------------------------------------------------------------------------------------

    def _start(self, pending: Pending, work: Work) -> None:
        self._unanswered[pending.id] = pending
        self._working.add(pending)
        self._idle.clear()
        task = asyncio.create_task(self._serve(pending, work), name=f"{pending.method} {pending.id}")
        pending.task = task
        # A task that is cancelled before its first step never runs: it is finished here.
        task.add_done_callback(lambda _: self._finish(pending))

    async def _serve(self, pending: Pending, work: Work) -> None:
        try:
            result = await work(pending)
            if isinstance(result, Reply):
                self._answer(pending, result.result.wire())
                await result.then()
            else:
                self._answer(pending, result)
        except asyncio.CancelledError:
            self._fail(pending, self._cancelled())
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

    def _cancelled(self) -> SidecarError:
        return ServerCancelled() if self._is_ending else RequestCancelled()

    def _answer(self, pending: Pending, result: Json) -> None:
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

    def _fail(self, pending: Pending, error: SidecarError) -> None:
        if InsideRequests.owns(pending.id):
            self.inside.answer(pending.id, error)
            self._send(pending, None)
        else:
            log_refusal(pending.method, error)
            self._send(pending, error_answer(pending.id, error), error.kind)

    def _send(self, pending: Pending, body: bytes | None, failure: str | None = None) -> None:
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

    def _finish(self, pending: Pending) -> None:
        """Free what the request held, in the step that answered it: its client may have read that before our next."""
        if pending not in self._working:
            return
        if not pending.answered:
            self._fail(pending, self._cancelled())
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
            self._trace.set(member(message.params, "value"))
            self._language_server.notify(message.method, message.params)
        elif self._services is None:
            LOGGER.info("a notification before initialize was ignored")
        elif message.method == "workspace/didChangeConfiguration":
            self._lifecycle.configuration_changed()
        elif (message.method == PROGRESS and progressed(message.params, self._services)) or (
            message.method == PROGRESS_CANCEL and progress_cancelled(message.params, self._services)
        ):
            return
        elif self._language_server.handles(message.method):
            self._language_server.notify(message.method, message.params)
        # Whatever else it is: a notification is never answered.

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


def _parse_error(why: object) -> ParseError:
    return ParseError(f"the message is no JSON: {why}")
