"""Requests to the client: ids of our own, one answer each, a cancel where nobody waits any more. Knows no method."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple, cast

from protocol.base import Json, JsonObject
from protocol.errors import KINDS
from sidecar.sessions.outlet import AskFailed
from sidecar.telemetry import LOGGER

from .envelope import Response, notification, request

_TOO_LARGE: Final = KINDS["messageTooLarge"].code
_GONE: Final[JsonObject] = {"error": {"code": 0, "message": "the client can answer nothing any more"}}


class _Asked(NamedTuple):
    answer: "asyncio.Future[JsonObject]"
    answered: Callable[[], None] | None


class ReverseRequests:
    """What the client was asked and has not answered. Ids are `s1`, `s2`, …, whatever ids the client uses."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """Ask nothing yet.

        Args:
            send: takes the body of a message to the client.
        """
        self._send = send
        self._ids = count(1)
        self._open: dict[str, _Asked] = {}
        self._closed = False
        self.max_bytes = 64 << 20
        """Longest request that the client takes."""

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout: float | None = None,
        answered: Callable[[], None] | None = None,
    ) -> Json:
        """Ask, and wait. Whoever stops waiting sends `$/cancelRequest` by that.

        Args:
            method: What is asked.
            params: As they go on the wire.
            timeout: Seconds; None waits as long as the client lives.
            answered: Called at once when its answer is read.

        Raises:
            AskFailed: the client answered with an error, has gone, or does not take so long a request.
            TimeoutError: it has not answered in time.
        """
        if self._closed:
            raise _failure(_GONE)
        request_id = f"s{next(self._ids)}"
        body = request(request_id, method, params)
        if len(body) > self.max_bytes:
            raise AskFailed(_TOO_LARGE, f"the request is longer than the {self.max_bytes} bytes that the client takes")
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[request_id] = _Asked(answer, answered)
        self._send(body)
        try:
            async with asyncio.timeout(timeout):
                message = await answer
        finally:
            if self._open.pop(request_id, None) is not None:
                self._send(notification("$/cancelRequest", {"id": request_id}))
        if "error" in message:
            raise _failure(message)
        return message.get("result")

    def answer(self, response: Response) -> None:
        """Take an answer in. One that is late, or to no question of ours, is ignored."""
        waiting = self._open.pop(response.id, None) if isinstance(response.id, str) else None
        if waiting is None:
            LOGGER.info("an answer to a request that is not open was ignored")
        elif not waiting.answer.done():
            waiting.answer.set_result(response.message)
            if waiting.answered is not None:
                waiting.answered()

    def is_open(self, request_id: object) -> bool:
        """Whether a request of ours waits under this id."""
        return isinstance(request_id, str) and request_id in self._open

    def close(self) -> None:
        """The client will answer nothing more: whoever waits hears so at once, and so does who asks later."""
        self._closed = True
        while self._open:
            _, waiting = self._open.popitem()
            if not waiting.answer.done():
                waiting.answer.set_result(_GONE)


def _failure(message: JsonObject) -> AskFailed:
    error = message["error"]
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code = fields.get("code")
    return AskFailed(code if isinstance(code, int) else -32603, str(fields.get("message", "the client failed")))
