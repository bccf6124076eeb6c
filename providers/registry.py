"""Provider type name → how it is made. A plain dict: adding a provider is adding a file and a row here.

A provider is imported when the first agent has it: a sidecar starts without the ones that nobody uses.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Final

from providers.api.history import HistoryProvider
from providers.api.provider import ContextProvider

DEFAULT_HISTORY_ID: Final = "in_memory"
"""Source id of the history that an agent gets by itself."""


@dataclass(frozen=True)
class ProviderType:
    """A row of the registry."""

    where: str | type[ContextProvider]
    """The class, or where it is: `module:Class`, the module one of this package."""
    description: str
    default_source_id: str | None = None
    """Default: the type's own name."""
    plugin: str | None = None
    """What it is called in messages, where it is not ours; `providers/plugins.py` finds these."""

    @cached_property
    def factory(self) -> type[ContextProvider]:
        """The class."""
        if not isinstance(self.where, str):
            return self.where
        module, _, name = self.where.partition(":")
        factory: type[ContextProvider] = getattr(import_module(f"providers.{module}"), name)
        return factory

    @property
    def is_history(self) -> bool:
        """Whether it can feed earlier turns to the model."""
        return issubclass(self.factory, HistoryProvider)


REGISTRY: Final[dict[str, ProviderType]] = {
    "editor_context": ProviderType(
        "editor_context:EditorContextProvider", "Shows the model what the user has open in the editor; may let it edit."
    ),
    "file_history": ProviderType(
        "file_history:FileHistoryProvider", "Keeps a history in files, one a session, and feeds it back."
    ),
    "chat_history_memory": ProviderType(
        "chat_history_memory:ChatHistoryMemory", "Remembers what was said in a scope, and brings back what fits."
    ),
    "file_memory": ProviderType(
        "file_memory:FileMemoryProvider", "Gives the model files to remember in, of a scope or a session."
    ),
    "host": ProviderType("host:HostProvider", "Is carried out by the host: it adds context, and learns from answers."),
    "history": ProviderType(
        "history:TranscriptHistory", "Feeds the session's transcript to the model.", DEFAULT_HISTORY_ID
    ),
    "instructions": ProviderType(
        "instructions:InstructionsProvider", "Adds the project's AGENTS.md files to the instructions."
    ),
    "mem0": ProviderType(
        "mem0:Mem0Provider", "Remembers what Mem0's library makes of conversations, and brings back what fits."
    ),
    "redis_history": ProviderType(
        "redis_history:RedisHistoryProvider", "Keeps a history on a Redis or Valkey server, and feeds it back."
    ),
    "static_messages": ProviderType(
        "static_messages:StaticMessagesProvider", "Puts fixed messages before the model on every run."
    ),
    "structured_memory": ProviderType(
        "structured_memory:StructuredMemoryProvider",
        "Learns named facts about the user, asks for missing ones, and uses known ones.",
    ),
    "text_search": ProviderType(
        "text_search_documents:FolderSearchProvider", "Searches a folder of documents, and names its sources."
    ),
}

NOT_YET: Final = frozenset(
    {
        "background_agents",
        "compaction",
        "environment",
        "file_access",
        "mode",
        "shell",
        "skills",
        "todo",
    }
)
"""Types of the contract that this build does not have."""
