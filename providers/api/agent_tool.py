"""Another agent as a tool: `as_tool("Research Agent")`. It makes the tool; the sidecar runs the other agent.

    def before_run(self, *, context, **_):
        context.extend_tools(self, [as_tool("Research Agent", propagate_session=True)])

The other agent sees its task and nothing else of the conversation, and its messages never come into it. With
`propagate_session` its tools work on the same session state; its providers keep theirs there under `AGENT/KEY`.
"""

import re
from typing import Final

from protocol.base import JsonObject
from protocol.tools import ApprovalMode

from .delegation import Errand
from .invocation import FunctionInvocationContext
from .tool import FunctionTool, ToolError, tool_from_schema

MAX_NAME: Final = 64

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


def as_tool(
    agent: str,
    *,
    name: str | None = None,
    description: str | None = None,
    arg_name: str = "task",
    arg_description: str | None = None,
    approval_mode: ApprovalMode = "never_require",
    propagate_session: bool = False,
) -> FunctionTool:
    """A tool that lets a configured agent do a task, and gives its text.

    The agent is looked up when the tool is called: an unknown one is an error result.

    Args:
        agent: Its name in the configuration.
        name: What the model calls the tool; by default the agent's name, with `_` for what no tool's name may hold.
        description: What the model is told of it.
        arg_name: The name of its one argument, the task.
        arg_description: What the model is told of that argument.
        approval_mode: Whether each call needs consent.
        propagate_session: Whether the agent works on the caller's session state. If not, it has a session of its own
            for each call, which is thrown away afterwards.

    Raises:
        ValueError: there is no agent's name, or a name cannot be used.
    """
    if not agent:
        raise ValueError("as_tool() needs the name of an agent")
    if not arg_name:
        raise ValueError("the argument of an agent's tool needs a name")
    about = arg_description or "The task, and all that must be known for it: nothing else of this conversation is told."
    schema: JsonObject = {
        "type": "object",
        "properties": {arg_name: {"type": "string", "description": about}},
        "required": [arg_name],
        "additionalProperties": False,
    }

    async def delegate(arguments: JsonObject, context: FunctionInvocationContext) -> str:
        if context.run.delegate is None:
            raise ToolError("No other agent can be called here.")
        return await context.run.delegate(
            Errand(agent, arguments[arg_name], context.call_id, dict(context.kwargs), propagate_session)
        )

    return tool_from_schema(
        delegate,
        name=tool_name(agent) if name is None else name,
        description=description or f"Let the agent {agent!r} do a task.",
        schema=schema,
        approval_mode=approval_mode,
    )


def tool_name(agent: str) -> str:
    """An agent's name as a tool's: `Research Agent` → `Research_Agent`, `3D` → `_3D`; `agent` where nothing is left."""
    name = _NOT_IN_NAMES.sub("_", agent).strip("_") or "agent"
    return (f"_{name}" if name[0].isdigit() else name)[:MAX_NAME]
