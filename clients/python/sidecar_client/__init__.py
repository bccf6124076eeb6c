"""A client of the agent sidecar: starts it as a child, and speaks JSON-RPC 2.0 with it. Standard library only.

    async with SidecarClient.start() as client:
        session = await client.create_session(agent={"instructions": "Be brief."})
        print((await session.run("Hello"))["text"])

What the sidecar may ask of this process (tools, context, consent, answers) is a `Host`. The shapes of everything on
the wire are in `sidecar_client.types`.
"""

from .client import SidecarClient
from .consent import Decision, accept, allow_always, allow_once, allow_session, decline, reject, reject_always
from .errors import RpcError, SidecarClientError, SidecarDied, SidecarIncompatible
from .host import Host, HostProvider
from .host_tools import FunctionTool, ToolCall, ToolFailure, ToolResult, host_tool
from .run import Run
from .session import Session
from .types import Handlers, RunEvent, RunResult

__all__ = [
    "Decision",
    "FunctionTool",
    "Handlers",
    "Host",
    "HostProvider",
    "RpcError",
    "Run",
    "RunEvent",
    "RunResult",
    "Session",
    "SidecarClient",
    "SidecarClientError",
    "SidecarDied",
    "SidecarIncompatible",
    "ToolCall",
    "ToolFailure",
    "ToolResult",
    "accept",
    "allow_always",
    "allow_once",
    "allow_session",
    "decline",
    "host_tool",
    "reject",
    "reject_always",
]
