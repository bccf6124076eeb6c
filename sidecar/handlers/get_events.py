"""`getEvents`: a page of a session's durable events after a cursor, waiting for the first one if asked to."""

import asyncio
from collections.abc import Sequence

from protocol.base import JsonObject
from protocol.state import GetEventsParams, GetEventsResult
from sidecar.sessions.envelopes import stored_envelope
from sidecar.sessions.record import read_record
from sidecar.sessions.storage_errors import storage_error
from sidecar.stores.base import SessionStore, Snapshot, StoredEvent, StoreError

from .services import Call, Pages, Services

POLL_S = 0.25
"""How often another process's session is looked at."""


async def get_events(params: GetEventsParams, call: Call, services: Services) -> GetEventsResult:
    """A cursor of another epoch gets no events: it is refused, not guessed."""
    deadline = asyncio.get_running_loop().time() + (params.wait_ms or 0) / 1000
    result = await _look(params, services)
    while not result.events and result.status == "ok" and asyncio.get_running_loop().time() < deadline:
        await _news(max(result.last_seq, params.after_seq), deadline, params, services)
        result = await _look(params, services)
    return result


async def _look(params: GetEventsParams, services: Services) -> GetEventsResult:
    """The page as it is now."""
    session = services.sessions.find_open(params.session_id)
    store = session.store if session is not None else await services.sessions.stores.durable()
    snapshot = await services.sessions.snapshot(params.session_id)
    epoch = read_record(snapshot).epoch
    if params.epoch is not None and params.epoch != epoch:
        return _empty(snapshot, "epochChanged")
    after = max(params.after_seq, snapshot.first_seq - 1)
    try:
        found, has_more = await _page(store, params, after, services.pages)
    except StoreError as error:
        raise storage_error(error, params.session_id) from error
    last_seen = found[-1].event.seq if found else 0
    return GetEventsResult(
        events=tuple(stored_envelope(params.session_id, epoch, stored) for stored in found if _wanted(stored, params)),
        last_seq=last_seen if has_more else max(snapshot.seq, last_seen),
        first_seq=snapshot.first_seq,
        has_more=has_more,
        status="truncated" if params.after_seq + 1 < snapshot.first_seq else "ok",
    )


async def _page(
    store: SessionStore, params: GetEventsParams, after: int, pages: Pages
) -> tuple[Sequence[StoredEvent], bool]:
    """The next events, read on while none of them is of a wanted type."""
    while True:
        page = await store.events(params.session_id, after, pages.items(params), pages.bytes)
        if page.next is None or any(_wanted(stored, params) for stored in page.items):
            return page.items, page.next is not None
        after = page.items[-1].event.seq


def _wanted(stored: StoredEvent, params: GetEventsParams) -> bool:
    return params.types is None or stored.event.type in params.types


async def _news(after: int, deadline: float, params: GetEventsParams, services: Services) -> None:
    """Wait until there is an event after `after`, or the time is over, or the session is closed here."""
    session = services.sessions.find_open(params.session_id)
    try:
        async with asyncio.timeout_at(deadline):
            if session is None:
                await asyncio.sleep(POLL_S)
            elif session.log.seq <= after:
                await session.log.appended()
    except TimeoutError:
        return


def _empty(snapshot: Snapshot, status: str) -> GetEventsResult:
    fields: JsonObject = {
        "events": (),
        "last_seq": snapshot.seq,
        "first_seq": snapshot.first_seq,
        "has_more": False,
        "status": status,
    }
    return GetEventsResult.model_validate(fields)
