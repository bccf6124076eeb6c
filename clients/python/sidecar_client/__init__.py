"""A client of the agent sidecar: starts it as a child, and speaks JSON-RPC 2.0 with it. Standard library only.

    async with SidecarClient.start() as client:
        session = await client.create_session(agent={"instructions": "Be brief."})
        print((await session.run("Hello"))["text"])

The shapes of everything on the wire are in `sidecar_client.types`, those of the requests that the sidecar sends in
`sidecar_client.handlers`.
"""

from .client import SidecarClient
from .errors import RpcError, SidecarClientError, SidecarDied
from .handlers import Handlers
from .run import Run
from .session import Session
from .types import RunEvent, RunResult

__all__ = [
    "Handlers",
    "RpcError",
    "Run",
    "RunEvent",
    "RunResult",
    "Session",
    "SidecarClient",
    "SidecarClientError",
    "SidecarDied",
]
