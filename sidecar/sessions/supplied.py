"""What a host supplies to a session and has to supply again: its tools and its providers. None of it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.agents import ProviderEntry
from protocol.sessions import WireWarning
from protocol.tools import HostTool
from sidecar.agents.binding import source_id_of

from .record import SessionRecord

HOST_TYPE: Final = "host"
"""The provider type of what the host carries out."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """A host's tools and providers for one session."""

    tools: tuple[HostTool, ...] = ()
    providers: tuple[ProviderEntry, ...] = ()
    """Entries of type `host`."""

    def recorded(self, record: SessionRecord) -> SessionRecord:
        """The record of a session that has these: their names, so that it can be said what is missing."""
        tools, providers = tuple(tool.name for tool in self.tools), tuple(map(source_id_of, self.providers))
        return record.model_copy(update={"host_tools": tools, "host_providers": providers})


NOTHING: Final = Supplied()


def told_apart(entries: Sequence[ProviderEntry]) -> tuple[tuple[ProviderEntry, ...], tuple[ProviderEntry, ...]]:
    """The entries that are stored with a session, and those of the host's own providers."""
    stored = tuple(entry for entry in entries if entry.type != HOST_TYPE)
    return stored, tuple(entry for entry in entries if entry.type == HOST_TYPE)


def missing(record: SessionRecord, supplied: Supplied) -> list[WireWarning]:
    """A warning for what a session had of a host and has no more."""
    tools = set(record.host_tools) - {tool.name for tool in supplied.tools}
    providers = set(record.host_providers) - set(map(source_id_of, supplied.providers))
    lost = [*(f"tool {name!r}" for name in sorted(tools)), *(f"provider {name!r}" for name in sorted(providers))]
    if not lost:
        return []
    message = f"the host has not supplied again: {', '.join(lost)}; pass tools and contextProviders to resumeSession"
    return [WireWarning(kind="hostPartsMissing", message=message)]
