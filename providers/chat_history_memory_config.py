"""What a `chat_history_memory` entry may say. Each key is described where `listProviders` shows it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from protocol.base import Flag, Number, Whole
from providers.api.filters import filter_of
from providers.api.provider import ProviderConfig

from .scopes import ScopeConfig

DEFAULT_COLLECTION = "memory"
DEFAULT_PROMPT = "Earlier conversations that may matter for this one, with the time at which each thing was said:"

Sources = tuple[Annotated[str, Field(min_length=1)], ...]


class ChatHistoryMemoryConfig(ProviderConfig):
    """Whose memory is used, when it is searched, and what is kept."""

    storage_scope: ScopeConfig
    """Whose memory the session's turns become."""
    search_scope: ScopeConfig | None = None
    """Whose memory is searched; default: the storage scope. It names some of that scope's keys, from the same place."""
    collection: Annotated[str, Field(min_length=1, max_length=256)] = DEFAULT_COLLECTION
    """Providers of one collection share their records, in any agent."""
    search_time: Literal["beforeRun", "onDemand"] = "beforeRun"
    """Before each run, or when the model asks by its tool."""
    function_tool_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "Search"
    """The tool's name, on demand."""
    function_tool_description: str = "Search what was said in earlier conversations with this user."
    """What the model is told of the tool."""
    search_first: Flag = False
    """On demand: tell the model to search before it answers."""
    context_prompt: str = DEFAULT_PROMPT
    """Stands before what was found."""
    max_results: Annotated[Whole, Field(ge=1, le=100)] = 3
    """Most memories that are shown; what says the same is one."""
    recent: Annotated[Whole, Field(ge=0, le=100)] = 0
    """Always show the newest turns of the scope too, so many, in order."""
    min_score: Annotated[Number, Field(ge=0, le=1)] | None = None
    """Leave out what ranks lower."""
    recency_half_life_days: Annotated[Number, Field(gt=0)] | None = None
    """Age takes a fifth of a score at most, half of that from what is this old; default: age does not count."""
    diversity: Annotated[Number, Field(ge=0, le=1)] = 0.1
    """How much less a memory counts that resembles a better one."""
    query_turns: Annotated[Whole, Field(ge=0, le=20)] = 0
    """Search with the user's words of the last turns too."""
    query_instructions: Flag = False
    """Search with the agent's instructions too."""
    search_sources: Sources = ("external",)
    """Whose messages are searched with: source types or source ids."""
    store_request_sources: Sources = ("external",)
    """Whose messages of the request are kept; none: an empty list."""
    store_response_sources: Sources | None = None
    """Whose messages of the answer are kept; default: all; none: an empty list."""

    @model_validator(mode="after")
    def _narrows(self) -> Self:
        if self.search_scope is not None:
            for key, source in self.search_scope.sources.items():
                if self.storage_scope.sources.get(key) != source:
                    raise ValueError(f"searchScope.{key} must be a key of storageScope, from the same place")
        for sources in (self.search_sources, self.store_request_sources, self.store_response_sources or ()):
            if sources:
                filter_of(sources)
        return self

    @property
    def searched(self) -> ScopeConfig:
        """The scope that is searched."""
        return self.search_scope or self.storage_scope
