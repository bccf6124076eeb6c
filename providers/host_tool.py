"""A tool that the host carries out: what a model is told of it, and the way to the host."""

from protocol.base import JsonObject
from protocol.tools import HostTool

from .api.host import HostError, HostToolCall
from .api.invocation import FunctionInvocationContext
from .api.json_schema import dangling_reference
from .api.tool import FunctionTool, ToolError, tool_from_schema
from .api.tool_result import ToolResult


def host_tool(entry: HostTool) -> FunctionTool:
    """The tool of an entry.

    Raises:
        ValueError: its schema is none, or refers to something that is not in it.
    """
    missing = dangling_reference(entry.input_schema)
    if missing is not None:
        raise ValueError(f"its schema refers to {missing[:200]!r}, which is not in it")

    async def call(arguments: JsonObject, context: FunctionInvocationContext) -> ToolResult:
        kwargs = dict(context.kwargs)
        asked = HostToolCall(context.call_id, entry.name, arguments, kwargs, entry.timeout_ms, context.progress)
        try:
            return await context.run.ask_host().call_tool(asked)
        except HostError as error:
            raise ToolError(str(error)) from error

    return tool_from_schema(
        call,
        name=entry.name,
        description=entry.description,
        schema=entry.input_schema,
        title=entry.title,
        kind=entry.kind,
        approval_mode=entry.approval_mode or "never_require",
        is_remote=True,
    )
