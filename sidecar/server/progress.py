"""Notifications of progress that concern us: how a request to the client gets on, and the end of interest in a run."""

from typing import Final, cast

from protocol.base import Json, JsonObject
from providers.api.clean_text import clean_text
from sidecar.handlers.services import Services

PROGRESS: Final = "$/progress"
PROGRESS_CANCEL: Final = "window/workDoneProgress/cancel"


def progressed(params: Json, services: Services) -> bool:
    """Pass on how a request to the client gets on: `token` is its `requestId`; whether it can be one's."""
    token, value = member(params, "token"), member(params, "value")
    text = value if isinstance(value, str) else member(value, "message")
    if not (isinstance(token, str) and isinstance(text, str)):
        return False
    services.sessions.tell_progress(token, clean_text(text))
    return True


def progress_cancelled(params: Json, services: Services) -> bool:
    """Stop the run with that work-done token; whether it is a run's."""
    token = member(params, "token")
    return isinstance(token, str | int) and services.tickets.cancel_token(token)


def member(params: Json, name: str) -> Json:
    """A member of a notification's params, which may be anything."""
    return cast("JsonObject", params).get(name) if isinstance(params, dict) else None
