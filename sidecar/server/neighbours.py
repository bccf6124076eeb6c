"""What the server needs of what stands around it: the wire, the language-server half, the process. Protocols only."""

import asyncio
from typing import Protocol

from protocol.base import Json, JsonObject
from sidecar.handlers.services import Services


class Wire(Protocol):
    """What the server needs of the connection."""

    def send(self, body: bytes) -> None:
        """Queue one message."""
        ...


class LanguageServer(Protocol):
    """What the server needs of the language-server half."""

    def handles(self, method: str) -> bool:
        """Whether a method is the half's."""
        ...

    def notify(self, method: str, params: Json) -> None:
        """Hand a notification over."""
        ...

    async def request(self, method: str, params: Json, stop: asyncio.Event) -> Json:
        """Hand a request over; `stop` is set when the client cancels it."""
        ...


class Lifecycle(Protocol):
    """What the server asks of the process."""

    def initialize(self, params: JsonObject) -> tuple[JsonObject, Services]:
        """The answer to `initialize`, and the sidecar that it started. Raises `SidecarError`."""
        ...

    def exit(self, *, after_shutdown: bool) -> None:
        """The client wants the process to end."""
        ...

    def end_of_input(self, *, after_shutdown: bool) -> None:
        """The client will send nothing more."""
        ...

    def client_gone(self, why: str) -> None:
        """Nobody reads any more."""
        ...

    def configuration_changed(self) -> None:
        """The client says that its configuration has changed."""
        ...
