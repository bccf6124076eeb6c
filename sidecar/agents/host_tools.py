"""The tools that a host gives to a session, in their places among the agent's."""

from collections.abc import Iterable, Sequence
from typing import Final

from protocol.messages import Source
from protocol.tools import HostTool
from providers.api.context import OfferedTool
from providers.api.tool import FunctionTool
from providers.host_tool import host_tool
from sidecar.errors import ConfigInvalid

BY_THE_HOST: Final = Source(type="external", source_id="host")
"""Who offers them."""


def made_host_tool(entry: HostTool) -> FunctionTool:
    """The tool of an entry.

    Raises:
        ConfigInvalid: it cannot be used.
    """
    try:
        return host_tool(entry)
    except ValueError as error:
        raise ConfigInvalid(f"host tool {entry.name!r}: {error}", key=f"tools.{entry.name}.inputSchema") from error


def with_host_tools(tools: Sequence[OfferedTool], entries: Iterable[HostTool]) -> tuple[OfferedTool, ...]:
    """An agent's tools, then the host's; one of the host's with an agent tool's name takes its place.

    Raises:
        ConfigInvalid: two of the host's have one name, or one cannot be used.
    """
    kept = {offered.tool.name: offered for offered in tools}
    given: set[str] = set()
    for entry in entries:
        if entry.name in given:
            raise ConfigInvalid(f"Duplicate tool name {entry.name!r}: give one of them another name", key="tools")
        given.add(entry.name)
        kept[entry.name] = OfferedTool(made_host_tool(entry), BY_THE_HOST)
    return tuple(kept.values())
