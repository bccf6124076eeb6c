"""Looks up what an agent names: provider types, tools, middleware. It imports off the event loop, and runs nothing."""

from collections.abc import Sequence
from dataclasses import replace

from protocol.agents import MiddlewareEntry, ProviderEntry
from protocol.messages import Source
from protocol.tools import AgentTool, ApprovalMode, HostTool, PythonTool, RegisteredTool, ToolEntry
from providers.api.agent import CustomAgent
from providers.api.agent_tool import as_tool
from providers.api.context import OfferedTool
from providers.api.tool import FunctionTool
from providers.plugins import is_import_path
from sidecar.errors import ConfigInvalid

from .catalog import ResolvedAgent
from .host_tools import made_host_tool
from .parts import BoundMiddleware, Parts
from .provider_types import provider_types
from .workspaces import Workspace


async def look_up(workspace: Workspace, agent: ResolvedAgent, added: Sequence[ProviderEntry] = ()) -> Parts:
    """The parts of an agent.

    Args:
        workspace: The configuration that it is of, or that its session works in.
        agent: The agent.
        added: The session's own providers.

    Raises:
        ConfigInvalid: something cannot be imported or used, or two tools have one name.
        ToolNotFound: no tool of that name is registered.
        AgentNotFound: a tool is an agent that is not configured.
        CapabilityRequired: it needs what this build does not have.
    """
    file = workspace.file_of(agent)
    tools = [await _tool(workspace, agent, entry, file) for entry in agent.spec.tools or ()]
    _refuse_namesakes(tools)
    source = Source(type="agent", source_id=agent.name)
    return Parts(
        providers=await provider_types(agent, added, workspace.plugins, file),
        tools=tuple(OfferedTool(tool, source) for tool in tools),
        middleware=await middleware_of(workspace, agent.spec.middleware or (), agent, file),
        detailed_tool_errors=workspace.loaded.config.detailed_tool_errors,
        implementation=await _implementation(workspace, agent, file),
    )


async def middleware_of(
    workspace: Workspace,
    entries: Sequence[MiddlewareEntry],
    agent: ResolvedAgent | None = None,
    file: str | None = None,
) -> tuple[BoundMiddleware, ...]:
    """Middleware by its entries; those of a host (`agent` is `None`, or inline) may not name import paths.

    Raises:
        ConfigInvalid: as `look_up`.
    """
    for entry in entries:
        if entry.import_ is not None and (agent is None or agent.is_inline):
            raise ConfigInvalid(_no_import("middleware", entry.import_), key="middleware.import")
    return tuple([await workspace.registered.middleware(entry, file) for entry in entries])


async def _implementation(workspace: Workspace, agent: ResolvedAgent, file: str | None) -> CustomAgent | None:
    spec = agent.spec
    if spec.implementation is None:
        if spec.implementation_config is not None:
            raise ConfigInvalid(
                f"agent {agent.name!r}: implementationConfig without implementation", key="implementationConfig"
            )
        return None
    if agent.is_inline and is_import_path(spec.implementation):
        raise ConfigInvalid(_no_import("implementation", spec.implementation), key="implementation")
    return await workspace.registered.agent(spec.implementation, spec.implementation_config, agent.name, file)


async def _tool(workspace: Workspace, agent: ResolvedAgent, entry: ToolEntry, file: str | None) -> FunctionTool:
    match entry:
        case RegisteredTool(name=name):
            return _gated(await workspace.registered.tool(name), entry.approval_mode)
        case PythonTool(import_=path):
            if agent.is_inline:
                raise ConfigInvalid(_no_import("tool", path), key="tools.import")
            return _gated(await workspace.registered.tool_at(path, file), entry.approval_mode)
        case AgentTool():
            return _agent_tool(workspace, entry)
        case HostTool():
            return made_host_tool(entry)


def _agent_tool(workspace: Workspace, entry: AgentTool) -> FunctionTool:
    """The other agent is known now, and made ready only when it is called: two agents may call each other."""
    if not entry.agent or entry.arg_name == "":
        raise ConfigInvalid("a tool of type 'agent' needs the name of an agent, and an argName", key="tools.agent")
    other = workspace.catalog.resolve(entry.agent)
    tool = as_tool(
        other.name,
        name=entry.name,
        description=entry.description or other.spec.description,
        arg_name=entry.arg_name or "task",
        arg_description=entry.arg_description,
        propagate_session=bool(entry.propagate_session),
    )
    return _gated(tool, entry.approval_mode)


def _gated(tool: FunctionTool, mode: ApprovalMode | None) -> FunctionTool:
    """The tool, with the entry's approval mode."""
    return tool if mode in (None, tool.approval_mode) else replace(tool, approval_mode=mode)


def _refuse_namesakes(tools: Sequence[FunctionTool]) -> None:
    by_name: dict[str, FunctionTool] = {}
    for tool in tools:
        if by_name.setdefault(tool.name, tool) is not tool:
            raise ConfigInvalid(f"Duplicate tool name {tool.name!r}: give one of them another name", key="tools")


def _no_import(what: str, path: str) -> str:
    return (
        f"{what} {path!r}: only a configuration file of the user's own, or of a trusted folder, may name an import"
        " path; register it there, and name it"
    )
