"""Requests that begin inside the process: served as the wire's are, in one order with them, and answered here."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final

from protocol.base import Json, JsonObject
from sidecar.errors import SidecarError

from .envelope import Request, RequestId

FIRST_ID: Final = 2**63
"""No client can use this id or a greater one: the decoder refuses such numbers."""


class InsideRequests:
    """Those that have not been answered."""

    def __init__(self, admit: Callable[[Request], None]) -> None:
        """Ask nothing yet.

        Args:
            admit: takes a request in as if it had just been read; raises `SidecarError` where it is refused at once.
        """
        self._admit = admit
        self._ids = count(FIRST_ID)
        self._open: dict[RequestId, asyncio.Future[Json]] = {}

    async def call(self, method: str, params: JsonObject) -> Json:
        """Have a request served. It is admitted before this waits for anything; to stop waiting does not stop it.

        Raises:
            SidecarError: it was refused, or failed.
        """
        request_id = next(self._ids)
        outcome = self._open[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._admit(Request(request_id, method, params))
            answer = await outcome
        finally:
            del self._open[request_id]
        if isinstance(answer, SidecarError):
            raise answer
        return answer

    @staticmethod
    def owns(request_id: RequestId) -> bool:
        """Whether a request began inside."""
        return isinstance(request_id, int) and request_id >= FIRST_ID

    def answer(self, request_id: RequestId, outcome: Json | SidecarError) -> None:
        """A result, or what went wrong; nobody may be waiting for it any more."""
        waiting = self._open.get(request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
