"""What is remembered in a scope, for people to see and to erase: the shapes of the memory methods. Types only."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from .base import Flag, Params, StrictModel, Whole, WireModel
from .sessions import PageLimit

ScopeText = Annotated[str, Field(pattern=r"\S")]
MemoryType = Literal["chat_history_memory", "file_memory"]
Collection = Annotated[str, Field(min_length=1, max_length=256)]


class MemoryScope(StrictModel):
    """Whose memory: each key that is given matches exactly. At least one is given, and none is blank."""

    application_id: ScopeText | None = None
    agent_id: ScopeText | None = None
    session_id: ScopeText | None = None
    user_id: ScopeText | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError("a scope needs a key: nobody may ask for everybody's memory")
        return self


class _OfScope(Params):
    type: MemoryType = "chat_history_memory"
    """The provider type whose memory is meant."""
    scope: MemoryScope
    """`file_memory` has one folder a scope: it takes the very keys that its entry names."""
    collection: Collection | None = None
    """Of `chat_history_memory`; default: the one that its entries have by default."""


class ListMemoriesParams(_OfScope):
    """A page of what is remembered in a scope, newest first; files by name."""

    cursor: str | None = None
    limit: PageLimit = 100


class SearchMemoriesParams(_OfScope):
    """What is remembered in a scope and fits a question, best first."""

    query: str
    """Blank finds nothing."""
    limit: Annotated[Whole, Field(gt=0, le=100)] = 10


class DeleteMemoriesParams(_OfScope):
    """Erase what is remembered in a scope: some memories, or `all` of them."""

    memory_ids: tuple[str, ...] | None = None
    """Ids that are not there, or not in the scope, are passed over."""
    all: Flag | None = None

    @model_validator(mode="after")
    def _names_some(self) -> Self:
        if (self.memory_ids is None) is (self.all is not True):
            raise ValueError("give memoryIds, or all: true, and not both")
        return self


class MemoryItem(WireModel):
    """One memory."""

    memory_id: str
    """Of a file: its name."""
    text: str
    role: str | None = None
    created_at: str | None = None
    """When it was said; absent of a file, whose store keeps no time."""
    scope: MemoryScope
    """All keys of its scope."""
    session_id: str | None = None
    """The session that it was said in."""


class ListMemoriesResult(WireModel):
    """A page of memories."""

    items: tuple[MemoryItem, ...]
    next_cursor: str | None = None


class FoundMemory(MemoryItem):
    """A memory that fits."""

    score: float
    """At most 1; says nothing across searches."""
    count: int | None = None
    """How many memories say the same, where it is more than one; the newest stands for them."""


class SearchMemoriesResult(WireModel):
    """What fits."""

    items: tuple[FoundMemory, ...]


class DeleteMemoriesResult(WireModel):
    """How much was erased."""

    deleted: int
