"""What `getState`, `listSessions` and the answers of runs show of sessions, open here or only stored. Reads only."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic_core import from_json

from protocol.base import JsonObject
from protocol.messages import Message
from protocol.runs import RunResult
from protocol.sessions import PendingRequest, SessionInfo
from protocol.state import ProviderState, RunState
from sidecar.agents.binding import merge_entries, source_id_of
from sidecar.agents.pipeline import HookStats
from sidecar.errors import RunNotFound, StoredFailure
from sidecar.stores.base import Page, SessionRow, SessionStore, Snapshot, StoredMessage

from .approvals import read_questions
from .open_session import OpenSession, session_info
from .record import RunRecord, SessionRecord, read_record
from .recovery import interrupted
from .run_results import run_result

OUTPUT_PAGE = 1_000
OUTPUT_PAGE_BYTES = 64 << 20
SCANNED_EVENTS = 1_000
SCANNED_PAGE = 200
"""Messages that are looked through at a time for those of a source."""


def stored_info(row: SessionRow) -> SessionInfo:
    """A row of the list: a session that is not open here."""
    record = read_record(row)
    running = row.has_unfinished_run and row.owner is not None
    return session_info(
        record,
        last_seq=row.seq,
        status="running" if running else "inputRequired" if row.has_requests else "idle",
        is_open=False,
        model=_model(record),
    )


def snapshot_info(snapshot: Snapshot) -> SessionInfo:
    """A stored session that is not open here."""
    record = read_record(snapshot)
    running = bool(snapshot.unfinished_runs) and snapshot.owner is not None
    return session_info(
        record,
        last_seq=snapshot.seq,
        status="running" if running else "inputRequired" if _waits(snapshot) else "idle",
        is_open=False,
        model=_model(record),
    )


def _waits(snapshot: Snapshot) -> bool:
    return any(one.parked for one in read_questions(snapshot.session, snapshot.requests))


def snapshot_state(snapshot: Snapshot) -> JsonObject:
    """The stored state bag."""
    return {key: from_json(value) for key, value in snapshot.state.items()}


def snapshot_requests(snapshot: Snapshot) -> tuple[PendingRequest, ...]:
    """The open questions of a stored session. Where its process is dead, only approvals outlive it."""
    questions = read_questions(snapshot.session, snapshot.requests)
    found = [one.pending for one in questions if one.decision is None and (one.parked or snapshot.owner is not None)]
    if snapshot.owner is not None:
        bodies = (from_json(body) for body in snapshot.requests.values())
        found += [PendingRequest.model_validate(body) for body in bodies if body.get("kind") != "approval"]
    return tuple(sorted(found, key=lambda one: one.opened_at))


async def was_resolved(store: SessionStore, session_id: str, request_id: str) -> bool:
    """Whether the events that are kept tell of a request to the host that it was resolved, in an earlier process too.

    Raises:
        StoreError: they could not be read.
    """
    position = 0
    while True:
        page = await store.events(session_id, position, SCANNED_EVENTS, OUTPUT_PAGE_BYTES)
        for stored in page.items:
            position = stored.event.seq
            if stored.event.type == "request.resolved" and from_json(stored.event.data).get("requestId") == request_id:
                return True
        if page.next is None:
            return False


def open_providers(session: OpenSession) -> tuple[ProviderState, ...]:
    """The providers of a session that is open here, with their state and how they did lately."""
    state = session.state()
    return tuple(
        _provider(bound.source_id, bound.type, "ready", state.get(bound.state_key), session.stats.get(bound.source_id))
        for bound in session.plan.providers
    )


def stored_providers(snapshot: Snapshot) -> tuple[ProviderState, ...]:
    """The providers that a stored session names itself: its agent is looked up only when it is opened."""
    record = read_record(snapshot)
    spec = record.agent_spec
    entries = merge_entries((spec.context_providers or ()) if spec else (), record.context_providers)
    state = snapshot_state(snapshot)
    return tuple(
        _provider(
            source_id_of(entry), entry.type, "unavailable", state.get(entry.state_key or source_id_of(entry)), None
        )
        for entry in entries
    )


def _provider(
    source_id: str,
    kind: str,
    status: Literal["ready", "unavailable"],
    state: JsonObject | None,
    stats: HookStats | None,
) -> ProviderState:
    stats = stats or HookStats()
    return ProviderState(
        source_id=source_id,
        type=kind,
        status=status,
        state=state if state is not None else {},
        last_before_ms=stats.last_before_ms,
        last_after_ms=stats.last_after_ms,
        last_error=stats.last_error,
    )


def run_state(run: RunRecord, *, owner_lives: bool) -> RunState:
    """A stored run. One without an end, whose process is dead, reads as interrupted."""
    if not run.ended and not owner_lives:
        run = interrupted(run).model_copy(update={"ended_at": None})
    return RunState.model_validate(
        {
            "run_id": run.run_id,
            "status": run.status,
            "stop_reason": run.stop_reason,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "error": run.error,
        }
    )


async def find_joined_run(store: SessionStore, session_id: str, run_id: str) -> RunRecord | None:
    """A stored run; if it was taken into another one, that one.

    Raises:
        StoreError: it could not be read.
    """
    run = await find_run(store, session_id, run_id)
    return run if run is None or run.alias_of is None else await find_run(store, session_id, run.alias_of)


async def find_run(store: SessionStore, session_id: str, run_id: str) -> RunRecord | None:
    """A stored run.

    Raises:
        StoreError: it could not be read.
    """
    stored = await store.find_run(session_id, run_id)
    return None if stored is None else RunRecord.model_validate_json(stored.body)


async def promised_runs_begun(store: SessionStore, session_id: str, requests: Mapping[str, bytes]) -> frozenset[str]:
    """Of the runs that were promised for decided calls, those that have begun.

    Raises:
        Damaged: a request does not read back.
        StoreError: the runs could not be read.
    """
    promised = {one.parked.next_run_id for one in read_questions(session_id, requests) if one.parked and one.decision}
    return frozenset([run_id for run_id in promised if await find_run(store, session_id, run_id) is not None])


async def run_output(store: SessionStore, session_id: str, run: RunRecord) -> tuple[Message, ...]:
    """The whole messages of a run's output, in order.

    Raises:
        StoreError: they could not be read.
    """
    wanted = set(run.message_ids)
    found: list[Message] = []
    after: int | None = None
    while len(found) < len(wanted):
        page = await store.messages(
            session_id,
            after=after,
            limit=OUTPUT_PAGE,
            max_bytes=OUTPUT_PAGE_BYTES,
            run_id=run.run_id,
            hidden=True,
        )
        messages = (Message.model_validate_json(row.body) for row in page.items)
        found.extend(message for message in messages if message.message_id in wanted)
        if page.next is None:
            break
        after = page.items[-1].position
    return tuple(found)


async def transcript_page(
    store: SessionStore,
    session_id: str,
    *,
    after: int | None,
    limit: int,
    max_bytes: int,
    newest_first: bool,
    sources: frozenset[str] | None,
) -> tuple[Sequence[Message], int | None]:
    """A page of the transcript, and the position that the next one begins after; `None` at the end.

    Args:
        store: Where the session is.
        session_id: Whose transcript it is.
        after: The position of the last message of the page before.
        limit: The most messages.
        max_bytes: What all of them may have; one message is given however long it is.
        newest_first: Whether to go backward.
        sources: The types and ids of the sources that are wanted; `None` wants all. The page is filled with messages
            of these, however many others stand between them.

    Raises:
        StoreError: it could not be read.
    """
    read = partial(store.messages, session_id, max_bytes=max_bytes, newest_first=newest_first)
    if sources is not None:
        return await _page_of(sources, read, after, limit, max_bytes)
    page = await read(after=after, limit=limit)
    messages = [Message.model_validate_json(row.body) for row in page.items]
    return messages, page.items[-1].position if page.next is not None else None


async def _page_of(
    sources: frozenset[str],
    read: Callable[..., Awaitable[Page[StoredMessage]]],
    after: int | None,
    limit: int,
    max_bytes: int,
) -> tuple[Sequence[Message], int | None]:
    found: list[Message] = []
    last, length = after, 0
    while True:
        page = await read(after=after, limit=SCANNED_PAGE)
        for row in page.items:
            message = Message.model_validate_json(row.body)
            if sources.isdisjoint(known_sources(message)):
                continue
            length += len(row.body)
            if found and (len(found) >= limit or length > max_bytes):
                return found, last
            found.append(message)
            last = row.position
        if page.next is None:
            return found, None
        after = page.items[-1].position


async def stored_result(store: SessionStore, session_id: str, run_id: str) -> RunResult:
    """What an ended run was answered.

    Raises:
        StoredFailure: it failed; its own error.
        RunNotFound: it was never stored.
        StoreError: it could not be read.
    """
    record = await find_run(store, session_id, run_id)
    if record is None:
        raise RunNotFound(run_id, session_id)
    if record.error is not None:
        raise StoredFailure(record.error)
    return run_result(record, session_id, await run_output(store, session_id, record))


def _model(record: SessionRecord) -> str | None:
    return record.model or (record.agent_spec.model if record.agent_spec else None)


def known_sources(message: Message) -> Sequence[str]:
    """What a filter by source may say to mean this message."""
    source = message.source
    return () if source is None else tuple(name for name in (source.type, source.source_id) if name)
