"""`listTools`: the tools of a session's agent, or those that are registered. What providers add shows in each run."""

from collections.abc import Iterable

from protocol.approvals import ListToolsResult, SessionOrNone, ToolInfo
from providers.api.tool import FunctionTool

from .services import Call, Services


async def list_tools(params: SessionOrNone, call: Call, services: Services) -> ListToolsResult:
    """With who offers them, and whether they need consent."""
    if params.session_id is not None:
        session = await services.sessions.get_open(params.session_id)
        offered = [(one.tool, one.source.source_id or one.source.type) for one in session.plan.tools]
        return _listed(offered)
    registered = (await services.workspaces.of(None)).registered
    return _listed((tool, "registered") for tool in (await registered.tools()).values())


def _listed(tools: Iterable[tuple[FunctionTool, str]]) -> ListToolsResult:
    return ListToolsResult(
        items=tuple(
            ToolInfo(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                source=source,
                approval_mode=tool.approval_mode,
            )
            for tool, source in tools
        )
    )
