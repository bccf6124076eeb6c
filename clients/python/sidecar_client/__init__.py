"""A client of the agent sidecar: starts it as a child, and speaks JSON-RPC 2.0 with it. Standard library only.

    async with SidecarClient.start() as client:
        session = await client.create_session(agent={"instructions": "Be brief."})
        print((await session.run("Hello"))["text"])

The shapes of everything on the wire are in `sidecar_client.types`, those of the requests that the sidecar sends in
`sidecar_client.handlers`.
"""

from sidecar_client.client import SidecarClient
from sidecar_client.errors import RpcError, SidecarClientError, SidecarDied
from sidecar_client.handlers import Handlers
from sidecar_client.run import Run
from sidecar_client.session import Session
from sidecar_client.types import RunEvent, RunResult

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
