"""The sidecar and its client as the editor commands use them: methods of the wire, called inside the process."""

from collections.abc import Awaitable, Callable
from typing import Final

from protocol.base import JsonObject
from sidecar.sessions.outlet import AskFailed

from .envelope import notification
from .event_routes import EventRoutes, Watcher
from .reverse import ReverseRequests

CREATE_PROGRESS_S: Final = 5.0
"""A client that has not answered `window/workDoneProgress/create` by then is shown no progress."""


class SidecarCalls:
    """The methods that commands call; params and results are the wire's, and errors are `SidecarError`."""

    def __init__(self, call: Callable[[str, JsonObject], Awaitable[JsonObject]], events: EventRoutes) -> None:
        self._call = call
        self._events = events

    async def create_session(self, params: JsonObject) -> JsonObject:
        """`createSession`."""
        return await self._call("createSession", params)

    async def run(self, params: JsonObject, on_event: Watcher) -> JsonObject:
        """`run`, with `sessionId` and `runId` given; every event of it goes to `on_event` first."""
        with self._events.watched(str(params["sessionId"]), str(params["runId"]), on_event):
            return await self._call("run", params)

    async def cancel_run(self, params: JsonObject) -> JsonObject:
        """`cancelRun`."""
        return await self._call("cancelRun", params)

    async def get_state(self, params: JsonObject) -> JsonObject:
        """`getState`."""
        return await self._call("getState", params)


class Editor:
    """The client, as far as commands talk to it."""

    def __init__(self, send: Callable[[bytes], None], reverse: ReverseRequests) -> None:
        self._send = send
        self._reverse = reverse

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification of LSP."""
        self._send(notification(method, params))

    async def create_progress(self, token: str) -> bool:
        """Whether the client will show progress under this token."""
        try:
            await self._reverse.request("window/workDoneProgress/create", {"token": token}, timeout=CREATE_PROGRESS_S)
        except (AskFailed, TimeoutError):
            return False
        return True
