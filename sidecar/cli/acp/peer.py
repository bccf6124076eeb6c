"""JSON-RPC 2.0 with an ACP client, on our transport: one answer a request, cancels both ways. Knows no method of ACP.

The package `agent-client-protocol` has a connection of its own, which is not used: it ends at a line that is no
object, tells nobody the id that `$/cancel_request` names, repeats the input in its errors, and cannot work with files
in place of pipes.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, cast

from protocol.base import Json, JsonObject
from sidecar.errors import (
    InvalidRequest,
    MessageTooLarge,
    Overloaded,
    ParseError,
    RequestCancelled,
    SidecarError,
)
from sidecar.server.envelope import (
    BadEnvelope,
    Notification,
    Request,
    RequestId,
    Response,
    classify,
    error_answer,
    notification,
    request,
    result_answer,
)
from sidecar.telemetry import LOGGER, log_failure
from sidecar.transport.connection import Connection
from sidecar.transport.decode import DecodeError, decode, encode_json
from sidecar.transport.framing import Fault
from sidecar_client import RpcError, SidecarDied

CANCEL_REQUEST: Final = "$/cancel_request"
MAX_IN_FLIGHT: Final = 4_096
_INTERNAL_ERROR: Final = -32603


class Reply(NamedTuple):
    """A result, and what is done right after it was sent."""

    result: Json
    then: Callable[[], None]


class Handlers(Protocol):
    """What answers an ACP client."""

    async def request(self, method: str, params: Json) -> Json | Reply:
        """The result of a request. Its task is cancelled if the client takes the request back.

        Raises:
            SidecarError: it is refused.
            RpcError: the sidecar refused it.
            SidecarDied: the sidecar has ended.
        """
        ...

    def notified(self, method: str, params: Json) -> None:
        """A notification; the unknown ones as well."""
        ...


class _Work(NamedTuple):
    """A request that is worked on."""

    method: str
    task: "asyncio.Task[Json | Reply]"


class Peer:
    """One connection; see `sidecar.transport.connection.Receiver`.

    Requests are begun in the order of arrival, each in a task of its own, and notifications stand in the same order.

    Args:
        connection: Frames in and out; not started yet.
        on_eof: Called once, when the client will send nothing more.
        on_gone: Called once with the reason, when nobody will read what we send.
    """

    def __init__(self, connection: Connection, *, on_eof: Callable[[], None], on_gone: Callable[[str], None]) -> None:
        self._connection = connection
        self._when_eof, self._when_gone = on_eof, on_gone
        self._handlers: Handlers
        self._working: dict[RequestId, _Work] = {}
        self._ids = count(1)
        self._asked: dict[int, asyncio.Future[JsonObject]] = {}

    async def start(self, handlers: Handlers) -> None:
        """Begin to read."""
        self._handlers = handlers
        await self._connection.start(self)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification, after everything that was sent before."""
        self._connection.send(notification(method, params))

    async def ask(self, method: str, params: JsonObject) -> Json:
        """Send a request, and wait for its result. Cancelling the wait takes the request back.

        Raises:
            RpcError: The client answered with an error.
        """
        request_id = next(self._ids)
        answer = self._asked[request_id] = asyncio.get_running_loop().create_future()
        self._connection.send(request(request_id, method, params))
        try:
            message = await answer
        except asyncio.CancelledError:
            self.notify(CANCEL_REQUEST, {"requestId": request_id})
            raise
        finally:
            del self._asked[request_id]
        if "error" in message:
            raise _refusal(message["error"])
        return message.get("result")

    async def drain(self) -> None:
        """For producers: wait while the client is behind with reading."""
        await self._connection.drain()

    async def answered(self, timeout: float, besides: Collection[str] = ()) -> None:
        """Wait up to `timeout` seconds until the client's requests are answered; those of methods `besides` apart."""
        tasks = [work.task for work in self._working.values() if work.method not in besides]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    # ---- what comes in --------------------------------------------------------------------------------------------

    def on_message(self, body: bytes) -> None:
        """One message."""
        try:
            message = classify(decode(body))
        except DecodeError as error:
            self._refuse(None, ParseError(f"the line is no JSON: {error.reason}"))
        except BadEnvelope as bad:
            self._refuse(bad.id, bad.error)
        else:
            self._take(message)

    def on_fault(self, fault: Fault) -> None:
        """A message that could not be received."""
        if fault.kind == "tooLarge":
            error = MessageTooLarge(f"the message is longer than {fault.limit} bytes", fault.limit or 0)
            if fault.response_id is None:
                self._refuse(fault.request_id, error)
            else:
                self._take(Response(fault.response_id, {"error": error.wire()}))
        elif fault.fatal:
            LOGGER.warning("the input ended inside a message: %s", fault.reason)
        else:
            self._refuse(None, ParseError(f"the line is no message: {fault.reason}"))

    def on_eof(self) -> None:
        """The client will send nothing more. What it was asked stays open: a run may be parked with its question."""
        self._when_eof()

    def on_gone(self, why: str) -> None:
        """Nobody will read what we send."""
        self._when_gone(why)

    def _take(self, message: Request | Notification | Response) -> None:
        if isinstance(message, Request):
            self._begin(message)
        elif isinstance(message, Response):
            answer = self._asked.get(message.id) if isinstance(message.id, int) else None
            if answer is not None and not answer.done():
                answer.set_result(message.message)
        else:
            # Not before the requests that came earlier have begun: a cancel finds what it means.
            asyncio.get_running_loop().call_soon(self._notified, message.method, message.params)

    def _begin(self, message: Request) -> None:
        if message.id in self._working:
            self._refuse(message.id, InvalidRequest("a request with this id is still unanswered; use another id"))
        elif len(self._working) >= MAX_IN_FLIGHT:
            self._refuse(message.id, Overloaded(f"{MAX_IN_FLIGHT} requests are unanswered already"))
        else:
            task = asyncio.create_task(self._handlers.request(message.method, message.params))
            self._working[message.id] = _Work(message.method, task)
            task.add_done_callback(partial(self._answer, message.id))

    def _notified(self, method: str, params: Json) -> None:
        if method != CANCEL_REQUEST:
            self._handlers.notified(method, params)
        elif isinstance(params, dict):
            with suppress(TypeError):  # the id is no id
                work = self._working.get(cast("JsonObject", params).get("requestId", ""))
                if work is not None:
                    work.task.cancel()

    # ---- what goes out --------------------------------------------------------------------------------------------

    def _answer(self, request_id: RequestId, task: "asyncio.Task[Json | Reply]") -> None:
        method = self._working.pop(request_id).method
        if task.cancelled():
            self._refuse(request_id, RequestCancelled())
        elif (error := task.exception()) is None:
            self._send_result(request_id, task.result())
        elif isinstance(error, RpcError):
            fields: JsonObject = {"code": error.code, "message": error.message, "data": error.data}
            self._connection.send(encode_json({"jsonrpc": "2.0", "id": request_id, "error": fields}))
        elif isinstance(error, SidecarError):
            self._refuse(request_id, error)
        else:
            self._refuse(request_id, _internal(method, error))

    def _send_result(self, request_id: RequestId, result: Json | Reply) -> None:
        reply = result if isinstance(result, Reply) else None
        self._connection.send(result_answer(request_id, result if reply is None else reply.result))
        if reply is not None:
            reply.then()

    def _refuse(self, request_id: RequestId | None, error: SidecarError) -> None:
        self._connection.send(error_answer(request_id, error))


def _internal(method: str, error: BaseException) -> SidecarError:
    """What a client is told of an error that is none of its own; the log has more, under the same id."""
    if isinstance(error, SidecarDied):
        internal = SidecarError("the sidecar behind this agent has ended; start the agent again")
    else:
        internal = SidecarError("internal error")
    log_failure(method, error, internal.error_id)
    return internal


def _refusal(error: Any) -> RpcError:
    fields = cast("JsonObject", error) if isinstance(error, dict) else {}
    code, data = fields.get("code"), fields.get("data")
    return RpcError(
        code if isinstance(code, int) else _INTERNAL_ERROR,
        str(fields.get("message", "the client failed")),
        cast("JsonObject", data) if isinstance(data, dict) else None,
    )
