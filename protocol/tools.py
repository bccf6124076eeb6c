"""Tools as a host or a configuration names them."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Flag, JsonObject, StrictModel, Whole

ApprovalMode = Literal["never_require", "always_require"]

ToolName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class HostTool(StrictModel):
    """A tool that the host carries out."""

    type: Literal["host"] = "host"
    name: ToolName
    """What the model calls it."""
    title: str | None = None
    """What people are shown."""
    description: str
    """What the model is told of it."""
    input_schema: JsonObject
    """JSON Schema of the arguments."""
    kind: str | None = None
    """What sort of action it is, for people who are asked."""
    approval_mode: ApprovalMode | None = None
    """Whether each call needs consent."""
    timeout_ms: Whole | None = Field(default=None, gt=0)
    """Longest call; default: none."""


class RegisteredTool(StrictModel):
    """A tool of the sidecar's own, by its registered name."""

    type: Literal["registered"]
    name: ToolName
    """Its registered name."""
    approval_mode: ApprovalMode | None = None
    """Whether each call needs consent."""


class AgentTool(StrictModel):
    """Another agent, offered as a tool."""

    type: Literal["agent"]
    agent: str
    """The other agent's name."""
    name: ToolName | None = None
    """What the model calls it; default: the agent's name."""
    description: str | None = None
    """What the model is told of it; default: the agent's description."""
    arg_name: str | None = None
    """The name of its one argument, the task."""
    arg_description: str | None = None
    """What the model is told of that argument."""
    propagate_session: Flag | None = None
    """Whether the other agent works on this session's state."""
    approval_mode: ApprovalMode | None = None
    """Whether each call needs consent."""


class PythonTool(StrictModel):
    """A Python function by import path; configuration files only."""

    type: Literal["python"]
    import_: str = Field(alias="import")
    """`module:function`."""
    approval_mode: ApprovalMode | None = None
    """Whether each call needs consent."""


ToolEntry = HostTool | RegisteredTool | AgentTool | PythonTool
