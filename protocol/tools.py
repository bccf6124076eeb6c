"""Tools as a host or a configuration names them."""

from typing import Annotated, Literal

from pydantic import Field

from protocol.base import JsonObject, StrictModel

ApprovalMode = Literal["never_require", "always_require"]

ToolName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class HostTool(StrictModel):
    """A tool that the host carries out."""

    type: Literal["host"] = "host"
    name: ToolName
    title: str | None = None
    description: str
    input_schema: JsonObject
    """JSON Schema of the arguments."""
    kind: str | None = None
    approval_mode: ApprovalMode | None = None
    timeout_ms: int | None = Field(default=None, gt=0)


class RegisteredTool(StrictModel):
    """A tool of the sidecar's own, by its registered name."""

    type: Literal["registered"]
    name: ToolName
    approval_mode: ApprovalMode | None = None


class AgentTool(StrictModel):
    """Another agent, offered as a tool."""

    type: Literal["agent"]
    agent: str
    name: ToolName | None = None
    description: str | None = None
    arg_name: str | None = None
    arg_description: str | None = None
    propagate_session: bool | None = None
    approval_mode: ApprovalMode | None = None


class PythonTool(StrictModel):
    """A Python function by import path; configuration files only."""

    type: Literal["python"]
    import_: str = Field(alias="import")
    approval_mode: ApprovalMode | None = None


ToolEntry = HostTool | RegisteredTool | AgentTool | PythonTool
