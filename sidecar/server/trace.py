"""Tells what becomes of requests: the client, by `$/logTrace` if it asks, and the log. Never what is in them."""

import time
from collections.abc import Callable
from typing import Final

from protocol.base import Json, JsonObject
from sidecar.errors import SidecarError
from sidecar.telemetry import LOGGER

from .envelope import RequestId, notification

_LEVELS: Final = ("off", "messages", "verbose")


def log_refusal(what: str, error: SidecarError) -> None:
    """Note an error answer, so that its `errorId` can be found. Its message may repeat what a client has said."""
    LOGGER.info("%r: refused with %s errorId=%s", what[:100], error.kind, error.error_id)


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
        took = round((time.monotonic() - since) * 1000)
        LOGGER.debug("%r: answered after %d ms", method[:100], took)
        if self._level != "off":
            self._log(
                f"sending {'response' if failure is None else 'error'} '{method} - ({request_id})' after {took} ms",
                failure,
            )

    def _log(self, message: str, verbose: str | None = None) -> None:
        params: JsonObject = {"message": message}
        if verbose is not None and self._level == "verbose":
            params["verbose"] = verbose
        self._send(notification("$/logTrace", params))
