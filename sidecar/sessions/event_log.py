"""A session's events: numbers them, stores them with what they report, and sends them after their commit.

Only durable events take a new `seq`. An ephemeral one carries the `seq` of the last durable event plus `sub`. What
could not be stored waits in a backlog, is never sent live, and is tried again before anything newer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic_core import from_json, to_json

from protocol.base import JsonObject
from protocol.messages import Message
from sidecar.agents.sink import Draft
from sidecar.sessions.ids import new_id, now
from sidecar.stores.base import (
    Event,
    Fenced,
    Lease,
    Put,
    PutMessage,
    Refused,
    SeqConflict,
    SessionStore,
    StoredEvent,
    StoreError,
    Unavailable,
    Unit,
    Unknown,
)

SendEvent = Callable[[JsonObject], None]
"""Puts an event's envelope on the wire."""

UNKNOWN_RETRIES = 3
REPLAY_PAGE = 500
REPLAY_PAGE_BYTES = 4 << 20


@dataclass(slots=True)
class _Pending:
    """A unit on its way into the store, and what to send once it is there."""

    unit: Unit
    drafts: Sequence[Draft]
    extra: JsonObject | None
    send: bool = True


class EventLog:
    """The one writer of a session."""

    def __init__(
        self, store: SessionStore, lease: Lease, epoch: str, send: SendEvent, breathe: Callable[[], Awaitable[None]]
    ) -> None:
        self._store = store
        self._lease = lease
        self._epoch = epoch
        self._send = send
        self._breathe = breathe
        self._seq = lease.seq
        self._next_seq: int = lease.seq + 1
        self._sub = 0
        self._sent_seq = lease.seq
        self._backlog: list[_Pending] = []
        self._lock = asyncio.Lock()

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

    def ephemeral(self, event: str, data: JsonObject, run_id: str | None, **extra: JsonObject) -> None:
        """Send an event that is not stored."""
        self._sub += 1
        envelope: JsonObject = self._envelope(event, data, run_id, self._seq)
        envelope["sub"] = self._sub
        envelope["ephemeral"] = True
        envelope.update(extra)
        self._send(envelope)

    async def append(
        self,
        drafts: Sequence[Draft],
        puts: Sequence[Put] | Callable[[int], Sequence[Put]] = (),
        *,
        run_id: str | None = None,
        prune_through: int = 0,
        keep: bool = True,
        extra: JsonObject | None = None,
    ) -> None:
        """Store events and what they report as one unit, then send them.

        Args:
            drafts: The events.
            puts: Further writes of the unit, or a function from the unit's last seq to them.
            run_id: The run that the events belong to.
            prune_through: Events up to this one need not be kept.
            keep: Try again later if it cannot be stored now; else forget it.
            extra: Fields to add to the envelopes that are sent, but not stored.

        Raises:
            StoreError: it could not be stored.
            Fenced: another process owns the session.
        """
        async with self._lock:
            if not keep:
                await self._save_backlog()
            time = now()
            first = self._next_seq
            events = [_event(draft, seq, time, run_id) for seq, draft in enumerate(drafts, start=first)]
            last = first + len(events) - 1
            unit = Unit(
                id=new_id("unit"),
                session=self._lease.session,
                epoch=self._lease.epoch,
                expect_seq=first - 1,
                events=events,
                puts=(*_messages(drafts, run_id), *(puts(last) if callable(puts) else puts)),
                prune_through=prune_through,
            )
            self._next_seq = last + 1
            self._backlog.append(_Pending(unit, drafts, extra))
            try:
                await self._save_backlog()
            except (Unavailable, Refused) as error:
                if not keep or isinstance(error, Refused):  # a refused unit would stand in the way for good
                    self._backlog.pop()
                    self._next_seq = first
                raise

    async def flush(self) -> None:
        """Try to store what waits. Raises as `append` does."""
        async with self._lock:
            await self._save_backlog()

    def mute_backlog(self) -> None:
        """What waits now belongs to a run whose end was told already: store it later, send it in replays only."""
        for pending in self._backlog:
            pending.send = False

    @property
    def lock(self) -> asyncio.Lock:
        """While it is held nothing durable is stored or sent; a replay holds it from its answer to its end."""
        return self._lock

    async def replay(self, after: int, through: int) -> None:
        """Send stored events again, as they were. The caller holds the lock."""
        previous = after
        while previous < through:
            page = await self._store.events(self._lease.session, previous, REPLAY_PAGE, REPLAY_PAGE_BYTES)
            for stored in page.items:
                if stored.event.seq > through:
                    return
                self._resend(stored, previous)
                previous = stored.event.seq
            if page.next is None:
                return
            await self._breathe()

    def _resend(self, stored: StoredEvent, previous: int) -> None:
        event = stored.event
        envelope = self._envelope(event.type, hydrate(stored), event.run_id, event.seq)
        envelope["time"] = event.time
        envelope["prevSeq"] = previous
        self._send(envelope)

    def attached(self, cursor: int | None = None) -> None:
        """A client has just been told where the session is: the chain of `prevSeq` begins there."""
        self._sent_seq = self._seq if cursor is None else cursor

    async def _save_backlog(self) -> None:
        while self._backlog:
            pending = self._backlog[0]
            await self._commit(pending.unit)
            del self._backlog[0]
            self._seq = pending.unit.expect_seq + len(pending.unit.events)
            self._sub = 0
            if pending.send:
                self._send_all(pending)

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
        for event, draft in zip(pending.unit.events, pending.drafts, strict=True):
            envelope = self._envelope(event.type, _whole(draft), event.run_id, event.seq)
            envelope["prevSeq"] = self._sent_seq
            envelope["time"] = event.time
            if pending.extra:
                envelope.update(pending.extra)
            self._sent_seq = event.seq
            self._send(envelope)

    def _envelope(self, event: str, data: JsonObject, run_id: str | None, seq: int) -> JsonObject:
        envelope: JsonObject = {"sessionId": self._lease.session}
        if run_id is not None:
            envelope["runId"] = run_id
        envelope |= {"seq": seq, "epoch": self._epoch, "time": now(), "type": event, "data": data}
        return envelope


def is_lost(error: StoreError) -> bool:
    """Whether the session can no longer be written to by this process at all."""
    return isinstance(error, Fenced | SeqConflict)


def _event(draft: Draft, seq: int, time: str, run_id: str | None) -> Event:
    message_id = row_key(draft.message, run_id) if draft.message is not None else None
    return Event(seq=seq, type=draft.type, time=time, data=to_json(draft.data), run_id=run_id, message_id=message_id)


def _messages(drafts: Sequence[Draft], run_id: str | None) -> list[PutMessage]:
    found = {draft.message.message_id: draft.message for draft in drafts if draft.message is not None}
    return [put_message(message, run_id) for message in found.values()]


def put_message(message: Message, run_id: str | None) -> PutMessage:
    """The write that stores a message."""
    body = message.model_dump_json(by_alias=True, exclude_none=True).encode()
    return PutMessage(message_id=row_key(message, run_id), run_id=run_id, body=body)


def row_key(message: Message, run_id: str | None) -> str:
    """What a message's row is called: a host may send a message again, under its own id, after a run that failed."""
    return str(message.message_id) if run_id is None else f"{run_id}/{message.message_id}"


def _whole(draft: Draft) -> JsonObject:
    if draft.message is None:
        return draft.data
    return _joined(draft.type, draft.data, draft.message.wire())


def hydrate(stored: StoredEvent) -> JsonObject:
    """A stored event's data, with what it refers to."""
    data: JsonObject = from_json(stored.event.data)
    return data if stored.message is None else _joined(stored.event.type, data, from_json(stored.message))


def _joined(event: str, data: JsonObject, message: JsonObject) -> JsonObject:
    content: list[JsonObject] = message["content"]
    if event == "reasoning.completed":
        return {**data, "text": "".join(block["text"] for block in content if block["type"] == "reasoning")}
    return {**data, "content": content}
