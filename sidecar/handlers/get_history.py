"""`getHistory`: a page of a session's transcript, with the source of every message."""

from protocol.state import GetHistoryParams, GetHistoryResult
from sidecar.errors import InvalidParams
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.views import transcript_page
from sidecar.stores.base import StoreError

from .services import Call, Services


async def get_history(params: GetHistoryParams, call: Call, services: Services) -> GetHistoryResult:
    """Paged by count and by bytes; reads stored sessions too."""
    session = services.sessions.find_open(params.session_id)
    store = session.store if session is not None else await services.sessions.stores.durable()
    after = _position(params.cursor)
    try:
        if session is None:
            await store.load(params.session_id)
        messages, end = await transcript_page(
            store,
            params.session_id,
            after=after,
            limit=services.pages.items(params),
            max_bytes=services.pages.bytes,
            newest_first=params.order == "desc",
            sources=None if params.sources is None else frozenset(params.sources),
        )
    except StoreError as error:
        raise storage_error(error, params.session_id) from error
    return GetHistoryResult(messages=tuple(messages), next_cursor=None if end is None else str(end))


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise InvalidParams("the cursor is not one of getHistory", [{"path": "cursor", "message": "bad"}])
    return int(cursor)
