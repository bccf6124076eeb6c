"""Long-term memory as providers see it: scopes, records, and the ports of what keeps and finds them. Keeps nothing.

A record belongs to one collection and to one scope. Whoever reads names the scope, and gets what is of exactly that
scope, never of a wider one: two users' words do not meet. Scopes come from the session's record, never from a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from protocol.base import JsonObject

Vector = bytes
"""Numbers of 32-bit floats, little-endian, of unit length."""

ScopeKey = Literal["applicationId", "agentId", "sessionId", "userId"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory: each key that is given must match exactly; `None` says nothing of that key."""

    application_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given, which would mean everybody's."""
        return (self.application_id, self.agent_id, self.session_id, self.user_id) == (None, None, None, None)


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One thing that was said or noted, as it is kept."""

    memory_id: str
    """Given by whoever writes it; the same id again, in the same scope, replaces the record."""
    collection: str
    scope: Scope
    text: str
    """What is searched and shown; never blank."""
    created_at: str
    """RFC 3339, UTC: when it was said."""
    role: str | None = None
    author_name: str | None = None
    message_id: str | None = None
    session_id: str | None = None
    """The session that it was said in, whatever its scope."""
    context: str = ""
    """Text of its neighbours: searched along with it, and never shown."""
    metadata: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What to look for, and how."""

    collection: str
    scope: Scope
    text: str
    """Blank finds nothing."""
    limit: int = 3
    min_score: float | None = None
    """From 0 to 1, what is first in every ranking. It cuts by rank and age: a first place is never too low."""
    recency_half_life_days: float | None = None
    """Age takes a fifth of a score at most, half of that from what is this old; `None`: age does not count."""
    roles: Sequence[str] | None = None
    """Only what was said in these roles."""
    diversity: float = 0.0
    """0: by score alone; towards 1: what resembles better hits counts less. Near-duplicates are always one hit."""
    exclude_session: str | None = None
    """Nothing that was said in this session."""


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A record that was found."""

    record: MemoryRecord
    score: float
    """At most 1. Of one search; says nothing across searches."""
    count: int = 1
    """How many of the records that were found say the same; the newest one stands for them."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Some records, newest first, and where the next ones begin."""

    items: Sequence[MemoryRecord]
    next: str | None = None


class Embedder(Protocol):
    """Turns text into vectors."""

    @property
    def name(self) -> str:
        """Names the model and whatever else its vectors depend on; vectors of two names are never compared."""
        ...

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        """One vector a text, in order. Blank texts are never given.

        Raises:
            EmbedderError: it cannot be done now.
        """
        ...


class EmbedderError(Exception):
    """Texts could not be embedded. The text repeats nothing of an endpoint's answer."""


class ScopeRefused(ValueError):
    """A scope says nothing, or one of its keys is empty: it would mean everybody's, or nobody's."""


class Memory(Protocol):
    """Keeps and finds records. Writing is staged with a run (`SessionContext.remember`), and commits with it.

    Every method raises `ScopeRefused` for a scope that is empty, and `MemoryUnavailable` where it cannot be done now.
    """

    @property
    def embedder(self) -> str | None:
        """The name of the embedder whose vectors are searched; `None`: full text alone."""
        ...

    @property
    def problem(self) -> str | None:
        """Why the latest search was by full text alone, although there is an embedder; `None`: all is well."""
        ...

    async def search(self, query: MemoryQuery) -> Sequence[MemoryHit]:
        """The best hits, best first: full text and vectors together, or full text alone where there are no vectors.

        What says the same is one hit. An assistant's replies are at most half of the hits while others match too.
        """
        ...

    async def newest(self, collection: str, scope: Scope, limit: int) -> Sequence[MemoryRecord]:
        """The newest records of a scope, oldest of them first."""
        ...

    async def page(self, collection: str, scope: Scope, cursor: str | None, limit: int) -> MemoryPage:
        """The records of a scope, for people."""
        ...

    async def delete(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        """Erase records of a scope (`None`: all of them) from text, vectors and full text; how many there were."""
        ...

    async def count(self, collection: str, scope: Scope) -> int:
        """How many records a scope has."""
        ...


class MemoryUnavailable(Exception):
    """The memory cannot be read or written now, or needs a command that its text names."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or a folder of a store."""

    name: str
    is_folder: bool = False


class FileStore(Protocol):
    """Text files in a folder, that no name, link or race leads out of. Paths are relative, with `/`."""

    async def read(self, path: str) -> str | None:
        """The text; `None` if there is no such file."""
        ...

    async def write(self, path: str, text: str, *, overwrite: bool = True) -> bool:
        """Write all of it at once; whether it was written (it was there, and must not be overwritten: not)."""
        ...

    async def delete(self, path: str) -> bool:
        """Whether it was there."""
        ...

    async def entries(self, folder: str = "") -> Sequence[FileEntry]:
        """What a folder holds, by name."""
        ...


Resolved = Mapping[ScopeKey, str]
"""A scope's keys with their values, as they are kept in the session's record."""
