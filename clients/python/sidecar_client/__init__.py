"""A client of the agent sidecar: starts it as a child, and speaks JSON-RPC 2.0 with it. Standard library only.

async with SidecarClient.start() as client:
session = await client.create_session(agent={"instructions": "Be brief."})
print((await session.run("Hello")).get("text"))
"""

from sidecar_client.client import SidecarClient
from sidecar_client.errors import RpcError, SidecarClientError, SidecarDied
from sidecar_client.session import Run, Session
from sidecar_client.types import RunEvent, RunResult, State

__all__ = [
    "RpcError",
    "Run",
    "RunEvent",
    "RunResult",
    "Session",
    "SidecarClient",
    "SidecarClientError",
    "SidecarDied",
    "State",
]
