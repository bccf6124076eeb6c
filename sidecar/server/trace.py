"""`$/logTrace`: tells the client what becomes of its requests, as far as it asks for that. Never what is in them."""

import time
from collections.abc import Callable
from typing import Final

from protocol.base import Json, JsonObject

from .envelope import RequestId, notification

_LEVELS: Final = ("off", "messages", "verbose")


class Trace:
    """LSP's trace: off until `initialize` or `$/setTrace` says otherwise."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._level = "off"

    def set(self, level: Json) -> None:
        """`off`, `messages` or `verbose`; anything else changes nothing."""
        if level in _LEVELS:
            self._level = level

    def received(self, method: str, request_id: RequestId) -> None:
        """A request was read."""
        if self._level != "off":
            self._log(f"received request '{method} - ({request_id})'")

    def answered(self, method: str, request_id: RequestId, since: float, failure: str | None) -> None:
        """A request is about to be answered.

        Args:
            method: The request's.
            request_id: The request's.
            since: When it was read, on the monotonic clock.
            failure: What kind of error it gets, if it gets one.
        """
        if self._level != "off":
            took = round((time.monotonic() - since) * 1000)
            self._log(
                f"sending {'response' if failure is None else 'error'} '{method} - ({request_id})' after {took} ms",
                failure,
            )

    def _log(self, message: str, verbose: str | None = None) -> None:
        params: JsonObject = {"message": message}
        if verbose is not None and self._level == "verbose":
            params["verbose"] = verbose
        self._send(notification("$/logTrace", params))
