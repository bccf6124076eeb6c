"""What a store keeps of long-term memory, and what it is asked: plain values. Nothing here reads or writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.api.memory import Scope, Vector


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """A record that is written, with its unit: all of it, or the whole record in place of one with its id.

    A record is known by its collection, its scope and its id: the same id in two scopes is two records.
    """

    collection: str
    memory_id: str
    scope: Scope
    text: str
    """Never blank."""
    created_at: str
    """RFC 3339, with an offset."""
    context: str = ""
    role: str | None = None
    session: str | None = None
    """The session that it was said in, whatever its scope."""
    body: bytes = b"{}"
    """Whatever else belongs to the record, as JSON: a store never looks inside."""


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which records are meant: of one collection and exactly one scope, never of a wider one."""

    collection: str
    scope: Scope
    roles: Sequence[str] | None = None
    exclude_session: str | None = None


@dataclass(frozen=True, slots=True)
class QueryVector:
    """What is looked for, as numbers, and whose numbers they are."""

    embedder: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A record as it was read."""

    ref: int
    """Of this very text: it is never given again, not to the record that replaces this one."""
    write: MemoryWrite
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What one search has found, before it is put in one order."""

    rows: Mapping[int, MemoryRow] = field(default_factory=dict[int, MemoryRow])
    """By `ref`: all that the rankings name."""
    full_text: Sequence[int] = ()
    """Refs, best first."""
    dense: Sequence[int] = ()
    """Refs, best first."""
    coverage: Mapping[int, float] = field(default_factory=dict[int, float])
    """What share of the question's words those of `full_text` hold, rare words counting more; where not said: all."""
    is_cut: bool = False
    """Whether there was more than was asked for."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A record that has no vector yet."""

    ref: int
    text: str
    context: str


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection, and whose vectors it has."""

    name: str
    records: int
    pending: int
    """How many of them have no vector."""
    embedder: str | None = None
    """`None` while it has no vectors."""
    dimension: int | None = None
