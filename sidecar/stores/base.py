"""The store port: whole units, fenced. What every store of sessions promises; no store's own code.

A `Unit` is one session's change, all or nothing. Each write carries the epoch of the writer's lease, the sequence
number that it expects and an id of its own, so that a write that was sent twice counts once, and a process that lost
a session can no longer write to it. Bodies are JSON in bytes: a store keeps them and never looks inside.

    StoreError
    ├── Fenced        the lease is lost: stop, write nothing more
    ├── SeqConflict   our own bug: the session fails loudly
    ├── Refused       the unit itself cannot be stored, too large or ill-formed; sending it again does not help
    ├── Unavailable   nothing was written; the same unit may be sent again
    ├── Unknown       the connection broke around the commit: send the same unit again
    ├── Locked        another live process owns the session
    ├── Missing       no such session
    ├── OtherModel    the vectors of a collection are another embedder's
    ├── Exists        the session exists, made with another key
    ├── Damaged       stored bytes do not read back; what could be saved is named
    └── Foreign       not a store of ours, or a newer version; it was left untouched
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from .memory_rows import MemoryWrite

if TYPE_CHECKING:
    from .memories import Memories

T = TypeVar("T")

ANY_SIZE: Final = 1 << 62
"""For pages that are cut by number only, in bytes."""


class StoreError(Exception):
    """The base of what a store raises."""


class Fenced(StoreError):
    """The epoch is lost: another process took the session over."""


class SeqConflict(StoreError):
    """The unit expected another sequence number than the stored one."""


class Refused(StoreError):
    """The unit cannot be stored as it is: it is too large, or ill-formed. Nothing was written."""


class Unavailable(StoreError):
    """Nothing was written: full disk, read-only file, failed sync, busy database."""

    def __init__(self, why: str, *, busy: bool = False) -> None:
        super().__init__(why)
        self.busy = busy


class Unknown(StoreError):
    """It is not known whether the unit was written; sending the same unit again settles it."""


class Locked(StoreError):
    """Another live process owns the session."""

    def __init__(self, session: str, pid: int, since: str) -> None:
        super().__init__(f"session {session!r} is owned by process {pid} since {since}")
        self.session, self.pid, self.since = session, pid, since


class Missing(StoreError):
    """There is no such session."""


class Exists(StoreError):
    """The session id is taken, by a session that was created with another key."""


class Damaged(StoreError):
    """Stored bytes do not read back. `session` is empty where the whole store is meant."""

    def __init__(self, session: str, what: str, saved: dict[str, int]) -> None:
        super().__init__(f"session {session!r} is damaged: {what}" if session else f"the store is damaged: {what}")
        self.session, self.what = session, what
        self.saved = saved
        """How many rows of each kind still read back."""


class Foreign(StoreError):
    """The file is not a store of ours, has a newer schema, or belongs to somebody else. It was left untouched."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One incarnation of a process."""

    id: str
    pid: int
    since: str
    """RFC 3339, UTC."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """What was opened."""

    version: int
    migrated_from: int | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one session, until released or taken over."""

    session: str
    owner: str
    epoch: int
    """The fence: rises by one whenever the session changes hands. Not the wire's epoch, stored with the session."""
    seq: int
    """The last durable event."""
    took_over: bool = False
    """Another owner, now dead, had the session open: repair what it left unfinished."""


@dataclass(frozen=True, slots=True)
class Event:
    """One durable event."""

    seq: int
    type: str
    time: str
    data: bytes
    """The event's fields as JSON, without what `message_id` refers to."""
    run_id: str | None = None
    message_id: str | None = None
    """A message whose content belongs into the event: stored once, in this unit or before, joined on reading."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it was read, with the body of the message that it refers to."""

    event: Event
    message: bytes | None


@dataclass(frozen=True, slots=True)
class PutMessage:
    """Append a message to the transcript, or rewrite the one with this id in its place."""

    message_id: str
    run_id: str | None
    body: bytes
    in_history: bool = True


@dataclass(frozen=True, slots=True)
class HideRun:
    """Take every message of a run out of the transcript; events still find them."""

    run_id: str


@dataclass(frozen=True, slots=True)
class PutState:
    """Set one key of the state bag, or drop it (`None`)."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class PutRun:
    """Write a run's record. `ended` runs are no longer looked for by crash repair."""

    run_id: str
    body: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class PutCall:
    """Write a tool call's record: its intent, and later its result."""

    call_id: str
    run_id: str
    body: bytes
    open: bool


@dataclass(frozen=True, slots=True)
class PutRequest:
    """Write a request that waits for an answer from outside, or drop it (`None`)."""

    request_id: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class PutSession:
    """Write the session's own record, and the columns that lists are made from."""

    body: bytes
    updated_at: str
    title: str | None = None
    cwd: str | None = None
    archived: bool = False


Put = PutMessage | HideRun | PutState | PutRun | PutCall | PutRequest | PutSession


@dataclass(frozen=True, slots=True)
class Unit:
    """One session's change, all or nothing: a turn's start, a call's intent, a result, a decision, a turn's end."""

    id: str
    """Random; tells a retry from a second write."""
    session: str
    epoch: int
    expect_seq: int
    events: Sequence[Event] = ()
    """Numbered `expect_seq + 1 … n` by the caller."""
    puts: Sequence[Put] = ()
    memory: Sequence[MemoryWrite] = ()
    """Committed in the same transaction."""
    prune_through: int = 0
    """Events up to this one are no longer kept."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A stored run."""

    run_id: str
    body: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A stored tool call."""

    call_id: str
    run_id: str
    body: bytes
    open: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent read of a session: everything but messages and events."""

    session: str
    body: bytes
    state: dict[str, bytes]
    seq: int
    first_seq: int
    """The oldest event that is still kept; `seq + 1` where none is."""
    epoch: int
    owner: Owner | None
    """Who holds the session now; `None` where nobody alive does."""
    unfinished_runs: Sequence[RunRecord] = ()
    open_calls: Sequence[CallRecord] = ()
    requests: dict[str, bytes] = field(default_factory=dict[str, bytes])
    message_count: int = 0


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of the transcript. `position` orders the transcript and is a cursor into it."""

    position: int
    message_id: str
    run_id: str | None
    body: bytes
    in_history: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and where the next ones begin."""

    items: Sequence[T]
    next: str | None = None
    """Cursor of the next page; `None` at the end."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row of the list of sessions."""

    session: str
    body: bytes
    seq: int
    updated_at: str
    owner: Owner | None
    has_unfinished_run: bool
    has_requests: bool


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """Which sessions to list; newest first."""

    cwd: str | None = None
    text: str | None = None
    """Found in title or session id, case-folded."""
    archived: bool | None = False
    """`None` lists both."""


class SessionStore(Protocol):
    """Where sessions live. Every method raises `StoreError` kinds only."""

    durable: bool
    """Whether what is written outlives the process."""

    @property
    def memories(self) -> "Memories":
        """Long-term memory: what units have written into it."""
        ...

    async def open(self, owner: Owner, *, migrate: bool = True) -> SchemaInfo:
        """Open the store for this process. A newer schema is refused (`Foreign`), untouched."""
        ...

    async def close(self) -> None:
        """Free all that this owner holds."""
        ...

    async def create(self, session: str, first: Unit, *, key: str | None = None) -> Lease:
        """Create a session with its first unit (`epoch` 1, `expect_seq` 0, with a `PutSession`) and own it.

        With the same `key` the call is a retry: it gives the session that is there, as `acquire` would. With another
        key, or none, an existing id raises `Exists`.
        """
        ...

    async def acquire(self, session: str) -> Lease:
        """Take a session that is free, mine, or whose owner is dead; else `Locked`.

        `epoch` rises unless the session was mine already: then the lease is the one that is held.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give a session up. Harmless if it was lost before."""
        ...

    async def commit(self, unit: Unit) -> int:
        """Write a unit; returns the last seq, and only when it is durable. The same unit again: the same answer.

        A caller that is cancelled meanwhile does not know whether it was written, as with `Unknown`.
        """
        ...

    async def load(self, session: str) -> Snapshot:
        """Read a session at one instant. Needs no lease."""
        ...

    async def messages(
        self,
        session: str,
        *,
        after: int | None = None,
        limit: int = 100,
        max_bytes: int = 4 << 20,
        newest_first: bool = False,
        run_id: str | None = None,
        hidden: bool = False,
    ) -> Page[StoredMessage]:
        """A page of the transcript, at least one row where there is one. `hidden` adds what `HideRun` took out."""
        ...

    async def events(self, session: str, after: int, limit: int, max_bytes: int) -> Page[StoredEvent]:
        """Durable events with a seq above `after`, oldest first, at least one where there is one."""
        ...

    async def find_run(self, session: str, run_id: str) -> RunRecord | None:
        """A run's record."""
        ...

    async def list(
        self, query: SessionQuery, cursor: str | None, limit: int, max_bytes: int = ANY_SIZE
    ) -> Page[SessionRow]:
        """A page of sessions, by key, not by offset; at least one, if there is one.

        Raises:
            ValueError: the cursor is malformed.
        """
        ...

    async def delete(self, lease: Lease) -> None:
        """Remove a session and all that belongs to it, long-term memory excepted. Harmless if it is gone."""
        ...
