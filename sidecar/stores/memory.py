"""The store that lives and dies with its process: for ephemeral sessions and tests. It shares nothing with others."""

from dataclasses import dataclass, field

from .base import (
    ANY_SIZE,
    CallRecord,
    Event,
    Exists,
    Fenced,
    HideRun,
    Lease,
    Missing,
    Owner,
    Page,
    Put,
    PutCall,
    PutMessage,
    PutRequest,
    PutRun,
    PutSession,
    PutState,
    Refused,
    RunRecord,
    SchemaInfo,
    SessionQuery,
    SessionRow,
    Snapshot,
    StoredEvent,
    StoredMessage,
    Unavailable,
    Unit,
)
from .paging import cut, decode_cursor, encode_cursor
from .plain_memories import PlainMemories
from .rules import MAX_UNIT_BYTES, REMEMBERED_UNITS, admit, check, check_first, referenced


@dataclass(slots=True)
class _Session:
    key: str | None
    record: PutSession
    owner: str | None
    epoch: int = 1
    seq: int = 0
    first_seq: int = 1
    units: dict[str, int] = field(default_factory=dict[str, int])
    events: list[Event] = field(default_factory=list[Event])
    messages: dict[str, StoredMessage] = field(default_factory=dict[str, StoredMessage])
    state: dict[str, bytes] = field(default_factory=dict[str, bytes])
    runs: dict[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    calls: dict[tuple[str, str], CallRecord] = field(default_factory=dict[tuple[str, str], CallRecord])
    requests: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def put(self, put: Put) -> None:
        """Do what one put says."""
        match put:
            case PutMessage(message_id, run_id, body, in_history):
                old = self.messages.get(message_id)
                position = old.position if old else len(self.messages) + 1
                self.messages[message_id] = StoredMessage(position, message_id, run_id, body, in_history)
            case HideRun(run_id):
                for message in list(self.messages.values()):
                    if message.run_id == run_id:
                        self.put(PutMessage(message.message_id, run_id, message.body, in_history=False))
            case PutState(key, value):
                _set(self.state, key, value)
            case PutRun(run_id, body, ended):
                self.runs[run_id] = RunRecord(run_id, body, ended)
            case PutCall(call_id, run_id, body, open_):
                self.calls[run_id, call_id] = CallRecord(call_id, run_id, body, open_)
            case PutRequest(request_id, body):
                _set(self.requests, request_id, body)
            case PutSession():
                self.record = put

    def unfinished(self) -> list[RunRecord]:
        """Runs that have not ended."""
        return [run for run in self.runs.values() if not run.ended]


class MemoryStore:
    """Implements `SessionStore`, without durability; each method is described there.

    What was written stays over `close` and another `open` of the same object, as for a process that starts again.
    """

    durable = False

    def __init__(self, *, max_unit_bytes: int = MAX_UNIT_BYTES) -> None:
        """Start empty; units larger than `max_unit_bytes` are `Refused`."""
        self._max_unit_bytes = max_unit_bytes
        self._owner: Owner | None = None
        self._sessions: dict[str, _Session] = {}
        self.memories = PlainMemories()

    async def open(self, owner: Owner, *, migrate: bool = True) -> SchemaInfo:
        """See `SessionStore.open`."""
        if self._owner is not None:
            raise Unavailable("the store is open already")
        self._owner, self.memories.is_open = owner, True
        return SchemaInfo(1)

    async def close(self) -> None:
        """See `SessionStore.close`."""
        for session in self._sessions.values():
            session.owner = None
        self._owner, self.memories.is_open = None, False

    async def create(self, session: str, first: Unit, *, key: str | None = None) -> Lease:
        """See `SessionStore.create`."""
        me = self._me()
        check(first, self._max_unit_bytes)
        check_first(session, first)
        if (found := self._sessions.get(session)) is not None:
            same_key = key is not None and key == found.key
            if same_key or (found.owner == me.id and found.epoch == first.epoch and first.id in found.units):
                return await self.acquire(session)
            raise Exists(f"there is a session {session!r} already")
        record = next(put for put in first.puts if isinstance(put, PutSession))
        created = _Session(key, record, me.id)
        self._write(created, first)
        self._sessions[session] = created
        return Lease(session, me.id, created.epoch, created.seq)

    async def acquire(self, session: str) -> Lease:
        """See `SessionStore.acquire`. Nobody else can have it."""
        me, found = self._me(), self._find(session)
        if found.owner != me.id:
            found.owner, found.epoch = me.id, found.epoch + 1
            found.units.clear()
        return Lease(session, me.id, found.epoch, found.seq)

    async def release(self, lease: Lease) -> None:
        """See `SessionStore.release`."""
        self._me()
        found = self._sessions.get(lease.session)
        if found is not None and (found.epoch, found.owner) == (lease.epoch, lease.owner):
            found.owner = None

    async def commit(self, unit: Unit) -> int:
        """See `SessionStore.commit`."""
        me = self._me()
        check(unit, self._max_unit_bytes)
        found = self._find(unit.session)
        mine = found.owner == me.id
        answer = admit(unit, epoch=found.epoch, seq=found.seq, mine=mine, written=found.units)
        return self._write(found, unit) if answer is None else answer

    async def delete(self, lease: Lease) -> None:
        """See `SessionStore.delete`."""
        self._me()
        found = self._sessions.get(lease.session)
        if found is None:
            return
        if (found.epoch, found.owner) != (lease.epoch, lease.owner):
            raise Fenced(f"session {lease.session!r} is not held by this lease any more")
        del self._sessions[lease.session]

    async def load(self, session: str) -> Snapshot:
        """See `SessionStore.load`."""
        found = self._find(session)
        return Snapshot(
            session=session,
            body=found.record.body,
            state=dict(found.state),
            seq=found.seq,
            first_seq=found.first_seq,
            epoch=found.epoch,
            owner=self._owner_of(found),
            unfinished_runs=found.unfinished(),
            open_calls=[call for call in found.calls.values() if call.open],
            requests=dict(found.requests),
            message_count=sum(message.in_history for message in found.messages.values()),
        )

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
        """See `SessionStore.messages`."""
        rows = [
            message
            for message in self._find(session).messages.values()
            if (hidden or message.in_history)
            and (run_id is None or message.run_id == run_id)
            and (after is None or (message.position < after if newest_first else message.position > after))
        ]
        rows.sort(key=lambda message: message.position, reverse=newest_first)
        taken, more = cut(rows, limit, max_bytes, lambda message: len(message.body))
        return Page(taken, str(taken[-1].position) if more else None)

    async def events(self, session: str, after: int, limit: int, max_bytes: int) -> Page[StoredEvent]:
        """See `SessionStore.events`."""
        found = self._find(session)
        rows = (
            StoredEvent(event, found.messages[event.message_id].body if event.message_id is not None else None)
            for event in found.events
            if event.seq > after
        )
        taken, more = cut(rows, limit, max_bytes, lambda e: len(e.event.data) + len(e.message or b""))
        return Page(taken, str(taken[-1].event.seq) if more else None)

    async def find_run(self, session: str, run_id: str) -> RunRecord | None:
        """See `SessionStore.find_run`."""
        return self._find(session).runs.get(run_id)

    async def list(
        self, query: SessionQuery, cursor: str | None, limit: int, max_bytes: int = ANY_SIZE
    ) -> Page[SessionRow]:
        """See `SessionStore.list`."""
        self._me()
        before = None if cursor is None else decode_cursor(cursor)
        keyed = sorted(((found.record.updated_at, name) for name, found in self._sessions.items()), reverse=True)
        rows = (
            self._row(name)
            for updated_at, name in keyed
            if (before is None or (updated_at, name) < before) and _matches(name, self._sessions[name].record, query)
        )
        taken, more = cut(rows, limit, max_bytes, lambda row: len(row.body))
        return Page(taken, encode_cursor(taken[-1].updated_at, taken[-1].session) if more else None)

    def _me(self) -> Owner:
        if self._owner is None:
            raise Unavailable("the store is not open")
        return self._owner

    def _find(self, session: str) -> _Session:
        self._me()
        try:
            return self._sessions[session]
        except KeyError:
            raise Missing(f"there is no session {session!r}") from None

    def _owner_of(self, found: _Session) -> Owner | None:
        return self._owner if found.owner is not None else None

    def _row(self, name: str) -> SessionRow:
        found = self._sessions[name]
        return SessionRow(
            session=name,
            body=found.record.body,
            seq=found.seq,
            updated_at=found.record.updated_at,
            owner=self._owner_of(found),
            has_unfinished_run=bool(found.unfinished()),
            has_requests=bool(found.requests),
        )

    def _write(self, found: _Session, unit: Unit) -> int:
        if missing := referenced(unit) - found.messages.keys():
            raise Refused(f"an event refers to message {min(missing)!r}, which is not stored")
        for put in unit.puts:
            found.put(put)
        found.events.extend(unit.events)
        found.seq += len(unit.events)
        if unit.prune_through >= found.first_seq:
            found.first_seq = min(unit.prune_through, found.seq) + 1
            found.events = [event for event in found.events if event.seq >= found.first_seq]
        for write in unit.memory:
            self.memories.put(write)
        found.units[unit.id] = found.seq
        if len(found.units) > REMEMBERED_UNITS:
            del found.units[next(iter(found.units))]
        return found.seq


def _set(values: dict[str, bytes], key: str, value: bytes | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _matches(name: str, record: PutSession, query: SessionQuery) -> bool:
    if query.text is not None:
        text = query.text.casefold()
        if text not in (record.title or "").casefold() and text not in name.casefold():
            return False
    wanted = (query.cwd is None or record.cwd == query.cwd) and query.archived in (None, record.archived)
    return bool(wanted)
