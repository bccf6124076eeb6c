"""JSON-RPC 2.0 with one sidecar: ids, answers, notifications, reverse requests. Knows no method of the contract."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, Literal, TypeAlias, cast

from .calling import contained
from .errors import INTERNAL_ERROR, METHOD_NOT_FOUND, REQUEST_CANCELLED, RpcError
from .handlers import RequestHandler
from .process import SidecarProcess
from .types import JsonObject

Direction: TypeAlias = Literal["sent", "received"]
Tracer: TypeAlias = Callable[[Direction, JsonObject], None]
"""Is shown every message, before it is written or handled."""
NotificationHandler: TypeAlias = Callable[[JsonObject], None]

CANCEL_REQUEST: Final = "$/cancelRequest"
_log = logging.getLogger(__name__)


def encode(message: JsonObject) -> bytes:
    """One message as one line.

    Raises:
        ValueError: The message holds a number that JSON has no word for, or is nested too deeply.
        TypeError: It holds what is no JSON at all.
    """
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: only an escape can carry it
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except RecursionError as error:
        raise ValueError("the message is nested too deeply to be JSON") from error


class Call:
    """A request that was sent.

    Attributes:
        answer: Its result, or the exception that took the result's place.
    """

    def __init__(self, call_id: int, answer: "asyncio.Future[Any]", connection: "Connection") -> None:
        self._id = call_id
        self._connection = connection
        self.answer = answer

    def cancel(self) -> None:
        """Ask the sidecar to stop working on it. The answer comes all the same."""
        if not self._connection.ended:
            self._connection.notify(CANCEL_REQUEST, {"id": self._id})


class Connection:
    """A conversation with one sidecar process.

    Args:
        handlers: Method → what answers it, for requests that the sidecar sends. Others are answered "method not found".
        notified: Method → what is called with the params of each such notification, in the order of arrival.
        on_end: Called once, when the process is gone or has closed its output and every call has failed with that.
        on_stderr: Called with each line that the process writes to stderr.
        trace: Shown every message in both directions.
    """

    def __init__(
        self,
        *,
        handlers: Mapping[str, RequestHandler],
        notified: Mapping[str, NotificationHandler],
        on_end: Callable[[], None],
        on_stderr: Callable[[str], None] | None = None,
        trace: Tracer | None = None,
    ) -> None:
        self.process = SidecarProcess(self._on_line, self._on_end, on_stderr)
        self._handlers = handlers
        self._notified = notified
        self._when_ended = on_end
        self._trace = trace
        self._ids = count(1)
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._answering: dict[str | int, asyncio.Future[Any]] = {}

    @property
    def ended(self) -> bool:
        """Whether the process is gone or has closed its output."""
        return self.process.ended

    async def open(self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]) -> None:
        """Start the process.

        Raises:
            SidecarDied: The command cannot be started.
        """
        await self.process.start(command, cwd=cwd, env=env)

    def call(self, method: str, params: JsonObject | None = None) -> Call:
        """Send a request, without waiting for anything.

        Raises:
            SidecarDied: The process has ended.
        """
        call_id = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params or {}})
        self._calls[call_id] = answer
        answer.add_done_callback(lambda _: self._calls.pop(call_id, None))
        return Call(call_id, answer, self)

    async def request(self, method: str, params: JsonObject | None = None) -> Any:
        """Send a request and wait for its result. Cancelling the wait cancels the request.

        Raises:
            RpcError: The sidecar answered with an error.
            SidecarDied: It ended before it answered.
        """
        call = self.call(method, params)
        try:
            await self.process.drain()
            return await call.answer
        except asyncio.CancelledError:
            call.cancel()
            raise

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification.

        Raises:
            SidecarDied: The process has ended.
        """
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def _send(self, message: JsonObject) -> None:
        line = encode(message)
        if not self.ended:
            self._show("sent", message)
        self.process.write(line)

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message: Any = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            _log.warning("the sidecar wrote a line that is no JSON object (%d bytes); it is skipped", len(line))
            return
        received = cast("JsonObject", message)
        self._show("received", received)
        try:
            self._dispatch(received)
        except Exception:  # a listener that is not ours failed: the lines after this one must still be handled
            _log.exception("a message of the sidecar could not be handled")

    def _show(self, direction: Direction, message: JsonObject) -> None:
        if self._trace is not None:
            try:
                self._trace(direction, message)
            except Exception:  # whoever watches must not keep a message from whoever waits for it
                _log.exception("a message could not be traced")

    def _dispatch(self, message: JsonObject) -> None:
        method, message_id = message.get("method"), message.get("id")
        if method is None:
            self._take_answer(message)
        elif message_id is None:
            self._take_notification(method, message.get("params") or {})
        else:
            work = asyncio.ensure_future(self._handle(method, message.get("params") or {}))
            self._answering[message_id] = work
            work.add_done_callback(partial(self._answer, message_id, method))

    def _take_answer(self, message: JsonObject) -> None:
        answer = self._calls.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        if (error := message.get("error")) is None:
            answer.set_result(message.get("result"))
        else:
            answer.set_exception(RpcError(error.get("code", 0), error.get("message", ""), error.get("data")))

    def _take_notification(self, method: str, params: JsonObject) -> None:
        if method == CANCEL_REQUEST:
            if (work := self._answering.get(params.get("id", 0))) is not None:
                work.cancel()
        elif (handler := self._notified.get(method)) is not None:
            handler(params)

    def _answer(self, message_id: str | int, method: str, work: "asyncio.Future[Any]") -> None:
        """Answer a reverse request, whatever became of it; also where it was cancelled before its first step."""
        self._answering.pop(message_id, None)
        reply: JsonObject = {"jsonrpc": "2.0", "id": message_id}
        if work.cancelled():
            reply["error"] = {"code": REQUEST_CANCELLED, "message": "the request was cancelled"}
        elif isinstance(error := work.exception(), RpcError):
            reply["error"] = {"code": error.code, "message": error.message, "data": error.data}
        elif error is not None:
            _log.error("the handler of %s failed", method, exc_info=error)
            reply["error"] = {"code": INTERNAL_ERROR, "message": f"the host's handler of {method} failed"}
        else:
            reply["result"] = work.result()
        if self.ended:
            return
        try:
            self._send(reply)
        except (TypeError, ValueError):
            _log.exception("the handler of %s returned something that is no JSON", method)
            reply.pop("result", None)
            self._send(
                {**reply, "error": {"code": INTERNAL_ERROR, "message": f"the host's answer to {method} is no JSON"}}
            )

    async def _handle(self, method: str, params: JsonObject) -> Any:
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"this host has no {method}")
        return await contained(handler(params))

    def _on_end(self) -> None:
        for answer in list(self._calls.values()):
            if not answer.done():
                answer.set_exception(self.process.death())
        for work in list(self._answering.values()):
            work.cancel()
        self._when_ended()
