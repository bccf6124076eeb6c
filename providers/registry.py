"""Provider type name → how it is made. A plain dict: adding a provider is adding a file and a row here."""

from dataclasses import dataclass
from typing import Final

from providers.api.history import HistoryProvider
from providers.api.provider import ContextProvider

from .chat_history_memory import ChatHistoryMemory
from .file_history import FileHistoryProvider
from .file_memory import FileMemoryProvider
from .history import TranscriptHistory
from .instructions import InstructionsProvider
from .static_messages import StaticMessagesProvider
from .structured_memory import StructuredMemoryProvider
from .text_search_documents import FolderSearchProvider

DEFAULT_HISTORY_ID: Final = "in_memory"
"""Source id of the history that an agent gets by itself."""


@dataclass(frozen=True, slots=True)
class ProviderType:
    """A row of the registry."""

    factory: type[ContextProvider]
    description: str
    default_source_id: str | None = None
    """Default: the type's own name."""
    plugin: str | None = None
    """What it is called in messages, where it is not ours; `providers/plugins.py` finds these."""

    @property
    def is_history(self) -> bool:
        """Whether it can feed earlier turns to the model."""
        return issubclass(self.factory, HistoryProvider)


REGISTRY: Final[dict[str, ProviderType]] = {
    "file_history": ProviderType(FileHistoryProvider, "Keeps a history in files, one a session, and feeds it back."),
    "chat_history_memory": ProviderType(
        ChatHistoryMemory, "Remembers what was said in a scope, and brings back what fits."
    ),
    "file_memory": ProviderType(FileMemoryProvider, "Gives the model files to remember in, of a scope or a session."),
    "history": ProviderType(TranscriptHistory, "Feeds the session's transcript to the model.", DEFAULT_HISTORY_ID),
    "instructions": ProviderType(InstructionsProvider, "Adds the project's AGENTS.md files to the instructions."),
    "static_messages": ProviderType(StaticMessagesProvider, "Puts fixed messages before the model on every run."),
    "structured_memory": ProviderType(
        StructuredMemoryProvider, "Learns named facts about the user, asks for missing ones, and uses known ones."
    ),
    "text_search": ProviderType(FolderSearchProvider, "Searches a folder of documents, and names its sources."),
}

NOT_YET: Final = frozenset(
    {
        "background_agents",
        "compaction",
        "editor_context",
        "environment",
        "file_access",
        "host",
        "mem0",
        "mode",
        "redis_history",
        "shell",
        "skills",
        "todo",
    }
)
"""Types of the contract that this build does not have."""
