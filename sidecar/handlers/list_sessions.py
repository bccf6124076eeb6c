"""`listSessions`: a page of what is stored, newest first, whichever process has it open."""

from protocol.sessions import ListSessionsParams, ListSessionsResult, SessionInfo
from sidecar.errors import InvalidParams
from sidecar.sessions.record import plain_folder
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.views import stored_info
from sidecar.stores.base import SessionQuery, SessionRow, StoreError

from .services import Call, Services


async def list_sessions(params: ListSessionsParams, call: Call, services: Services) -> ListSessionsResult:
    """A session that is open here is shown as it is now."""
    store = await services.sessions.stores.durable()
    query = SessionQuery(cwd=plain_folder(params.cwd), text=params.query, archived=params.archived)
    try:
        page = await store.list(query, params.cursor, services.pages.items(params), services.pages.bytes)
    except ValueError:
        raise InvalidParams("the cursor is not one of listSessions", [{"path": "cursor", "message": "bad"}]) from None
    except StoreError as error:
        raise storage_error(error, "") from error
    return ListSessionsResult(sessions=tuple(_info(row, services) for row in page.items), next_cursor=page.next)


def _info(row: SessionRow, services: Services) -> SessionInfo:
    session = services.sessions.find_open(row.session)
    return session.info() if session is not None else stored_info(row)
