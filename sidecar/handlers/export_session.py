"""`exportSession`: the whole session as one versioned JSON document, open here or not."""

from protocol.sessions import ExportSessionResult, SessionParams
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.transfer import read_contents, to_document
from sidecar.stores.base import StoreError

from .services import Call, Services


async def export_session(params: SessionParams, call: Call, services: Services) -> ExportSessionResult:
    """Session, messages and state; no events, no secrets."""
    try:
        async with services.sessions.steady(params.session_id) as store:
            contents = await read_contents(store, params.session_id)
    except StoreError as error:
        raise storage_error(error, params.session_id) from error
    return ExportSessionResult(document=to_document(contents))
