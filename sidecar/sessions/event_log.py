"""A session's events: numbers them, stores them with what they report, and sends them after their commit.

Only durable events take a new `seq`. An ephemeral one carries the `seq` of the last durable event plus `sub`. What
could not be stored waits in a backlog, is never sent live, and is tried again before anything newer.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from protocol.base import JsonObject
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.stores.base import (
    Fenced,
    Lease,
    Put,
    Refused,
    SeqConflict,
    SessionStore,
    StoreError,
    Unavailable,
    Unit,
    Unknown,
)
from sidecar.stores.memory_rows import MemoryWrite

from .envelopes import Caller, draft_rows, envelope, event_row, stored_envelope, whole
from .ids import new_id, now
from .outlet import Outlet

UNKNOWN_RETRIES = 3
REPLAY_PAGE = 500


@dataclass(slots=True)
class _Pending:
    """A unit on its way into the store, and what to send once it is there."""

    unit: Unit
    drafts: Sequence[Draft]
    caller: Caller | None
    extra: JsonObject | None
    before_send: Callable[[int], None] | None = None
    send: bool = True


class EventLog:
    """The one writer of a session."""

    def __init__(self, store: SessionStore, lease: Lease, epoch: str, outlet: Outlet) -> None:
        self._store = store
        self._lease = lease
        self._epoch = epoch
        self._outlet = outlet
        self._seq = lease.seq
        self._next_seq: int = lease.seq + 1
        self._sub = 0
        self._sent_seq = lease.seq
        self._backlog: list[_Pending] = []
        self._lock = asyncio.Lock()
        self._appended = asyncio.Event()

    @property
    def seq(self) -> int:
        """The last event that is stored."""
        return self._seq

    @property
    def next_seq(self) -> int:
        """The number that the next durable event will take."""
        return self._next_seq

    @property
    def lease(self) -> Lease:
        """The right to write."""
        return self._lease

    @property
    def has_backlog(self) -> bool:
        """Whether something waits to be stored."""
        return bool(self._backlog)

    def ephemeral(self, event: str, data: JsonObject, run_id: str, caller: Caller | None = None) -> None:
        """Send an event that is not stored."""
        if event in self._outlet.opted_out:
            return
        self._sub += 1
        # One literal: this is the hottest line of a streaming run.
        fields: JsonObject = {
            "sessionId": self._lease.session,
            "runId": run_id,
            "seq": self._seq,
            "sub": self._sub,
            "epoch": self._epoch,
            "time": now(),
            "ephemeral": True,
            "type": event,
            "data": data,
        }
        if caller is not None:
            fields |= caller.fields()
        self._outlet.send_event(fields)

    async def append(
        self,
        drafts: Sequence[Draft],
        puts: Sequence[Put] | Callable[[int], Sequence[Put]] = (),
        *,
        memory: Sequence[MemoryWrite] = (),
        run_id: str | None = None,
        caller: Caller | None = None,
        prune_through: int = 0,
        keep: bool = True,
        extra: JsonObject | None = None,
        before_send: Callable[[int], None] | None = None,
        send: bool = True,
    ) -> None:
        """Store events and what they report as one unit, then send them.

        Args:
            drafts: The events.
            puts: Further writes of the unit, or a function from the unit's last seq to them.
            memory: What the unit writes into long-term memory.
            run_id: The run that the events belong to.
            caller: Whose call that run is, if it is a delegated one.
            prune_through: Events up to this one need not be kept.
            keep: Try again later if it cannot be stored now; else forget it.
            extra: Fields to add to the envelopes that are sent, but not stored.
            before_send: Called with the unit's last seq when it is stored, before its events are sent.
            send: False for what happens before a client was told of the session: it comes in replays only.

        Raises:
            StoreError: it could not be stored.
            Fenced: another process owns the session.
        """
        async with self._lock:
            if not keep:
                await self._save_backlog()
            time = now()
            first = self._next_seq
            events = [event_row(draft, seq, time, run_id, caller) for seq, draft in enumerate(drafts, start=first)]
            last = first + len(events) - 1
            unit = Unit(
                id=new_id("unit"),
                session=self._lease.session,
                epoch=self._lease.epoch,
                expect_seq=first - 1,
                events=events,
                puts=(
                    *draft_rows(drafts, run_id, is_delegated=caller is not None),
                    *(puts(last) if callable(puts) else puts),
                ),
                memory=memory,
                prune_through=prune_through,
            )
            self._next_seq = last + 1
            self._backlog.append(_Pending(unit, drafts, caller, extra, before_send, send))
            try:
                await self._save_backlog()
            except StoreError as error:
                _tell(drafts, error)
                # A refused unit would stand in the way for good.
                if isinstance(error, Refused) or (isinstance(error, Unavailable) and not keep):
                    self._backlog.pop()
                    self._next_seq = first
                raise

    async def flush(self) -> None:
        """Try to store what waits. Raises as `append` does."""
        async with self._lock:
            await self._save_backlog()

    def mute_backlog(self, run_id: str) -> None:
        """The end of this run was told already: store what waits of it later, send that in replays only."""
        for pending in self._backlog:
            if any(event.run_id == run_id for event in pending.unit.events):
                pending.send = False

    @property
    def lock(self) -> asyncio.Lock:
        """While it is held nothing durable is stored or sent; a replay holds it from its answer to its end."""
        return self._lock

    async def appended(self) -> None:
        """Wait until something durable is stored, or the session is open here no longer."""
        await self._appended.wait()

    def wake(self) -> None:
        """Let go of everyone who waits in `appended`."""
        self._appended.set()
        self._appended = asyncio.Event()

    async def replay(self, after: int, through: int, page_bytes: int) -> int:
        """Send stored events again, as they were. The caller holds the lock.

        Args:
            after: Where to begin, this one left out.
            through: Where to end.
            page_bytes: How much is read at a time.

        Returns:
            The seq that was sent last; `after` if there was nothing to send.
        """
        position = sent = after
        while position < through:
            page = await self._store.events(self._lease.session, position, REPLAY_PAGE, page_bytes)
            for stored in page.items:
                position = stored.event.seq
                if position > through:
                    return sent
                if stored.event.type not in self._outlet.opted_out:
                    fields = stored_envelope(self._lease.session, self._epoch, stored)
                    fields["prevSeq"] = sent
                    self._outlet.send_event(fields)
                    sent = position
            if page.next is None:
                break
            await self._outlet.breathe()
        return sent

    def attached(self, cursor: int | None = None) -> None:
        """A client has just been told where the session is: the chain of `prevSeq` begins there."""
        self._sent_seq = self._seq if cursor is None else cursor

    async def _save_backlog(self) -> None:
        while self._backlog:
            pending = self._backlog[0]
            await self._commit(pending.unit)
            del self._backlog[0]
            if pending.unit.events:  # without any `seq` stands, and `sub` goes on
                self._seq = pending.unit.expect_seq + len(pending.unit.events)
                self._sub = 0
            if pending.send:
                reached("event.sent.before")
                self._send_all(pending)
                reached("event.sent.after")
            _tell(pending.drafts, None)
            self.wake()

    async def _commit(self, unit: Unit) -> None:
        for attempt in range(UNKNOWN_RETRIES):
            try:
                await self._store.commit(unit)
            except Unknown:
                if attempt == UNKNOWN_RETRIES - 1:
                    raise
            except (Fenced, SeqConflict):
                self._backlog.clear()  # nothing of it can ever be stored
                raise
            else:
                return

    def _send_all(self, pending: "_Pending") -> None:
        if pending.before_send is not None:
            pending.before_send(self._seq)
        for event, draft in zip(pending.unit.events, pending.drafts, strict=True):
            if event.type in self._outlet.opted_out:
                continue
            source = draft.source.wire() if draft.source is not None else None
            about = (whole(draft), event.run_id, event.seq, pending.caller, source)
            fields = envelope(self._lease.session, self._epoch, event.type, *about)
            fields["prevSeq"] = self._sent_seq
            fields["time"] = event.time
            if pending.extra:
                fields.update(pending.extra)
            self._sent_seq = event.seq
            self._outlet.send_event(fields)


def _tell(drafts: Sequence[Draft], error: StoreError | None) -> None:
    for draft in drafts:
        if draft.stored is not None and not draft.stored.done():
            draft.stored.set_result(error)


def is_lost(error: StoreError) -> bool:
    """Whether the session can no longer be written to by this process at all."""
    return isinstance(error, Fenced | SeqConflict)
