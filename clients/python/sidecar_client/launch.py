"""How a sidecar is started and greeted, so that the same can be done again for a new process. Keeps nothing."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .connection import Connection, Direction, NotificationHandler, Tracer
from .errors import RpcError
from .handlers import RequestHandler
from .handshake import PROTOCOL_VERSIONS, checked, refusal
from .process import clean_environment
from .types import JsonObject

CLIENT_ID: Final = "agent-sidecar-client"


@dataclass(frozen=True)
class Launch:
    """Everything that starting takes."""

    command: Sequence[str]
    cwd: str | None
    env: Mapping[str, str] | None
    options: JsonObject
    """Keys of `initializationOptions.sidecar`; they win over this client's own."""
    handlers: Mapping[str, RequestHandler]
    """What answers the sidecar's requests, in each process that is started."""
    features: JsonObject
    """What the sidecar is told of them."""
    on_stderr: Callable[[str], None] | None
    trace: Tracer | None

    def connection(self, notified: Mapping[str, NotificationHandler], on_end: Callable[[], None]) -> Connection:
        """A connection that is not open yet."""
        return Connection(
            handlers=self.handlers,
            notified=notified,
            on_end=on_end,
            on_stderr=self.on_stderr,
            trace=None if self.trace is None else _without_secrets(self.trace),
        )

    async def open(self, connection: Connection) -> JsonObject:
        """Start the process and initialize it; gives the answer of `initialize`.

        Raises:
            SidecarDied: It cannot be started, or ended at once.
            SidecarIncompatible: It is no sidecar, or one of another version.
            RpcError: It refused `initialize`.
        """
        await connection.open(self.command, cwd=self.cwd, env=clean_environment(self.env))
        ours: JsonObject = {
            "protocolVersions": list(PROTOCOL_VERSIONS),
            "clientId": CLIENT_ID,
            "features": self.features,
            **self.options,
        }
        params: JsonObject = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "clientInfo": {"name": CLIENT_ID},
            "initializationOptions": {"sidecar": ours},
        }
        try:
            answer = checked(await connection.request("initialize", params))
        except RpcError as error:
            raise refusal(error) from error
        connection.notify("initialized")
        return answer


def _without_secrets(trace: Tracer) -> Tracer:
    """The same, but shown no more than the names of the `secrets` that `initialize` brings."""

    def show(direction: Direction, message: JsonObject) -> None:
        if message.get("method") == "initialize":
            ours: JsonObject = message["params"]["initializationOptions"]["sidecar"]
            if "secrets" in ours:
                hidden = {**ours, "secrets": dict.fromkeys(ours["secrets"] or (), "…")}
                params = {**message["params"], "initializationOptions": {"sidecar": hidden}}
                message = {**message, "params": params}
        trace(direction, message)

    return show
