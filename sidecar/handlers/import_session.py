"""`importSession`: a session from an exported document. Its epoch and its events begin anew."""

from typing import cast

from protocol.base import Json, JsonObject
from protocol.sessions import ImportSessionParams, SessionResult
from sidecar.sessions.transfer import from_document

from .services import Call, Services


async def import_session(params: ImportSessionParams, call: Call, services: Services) -> SessionResult:
    """Refuses what is no document of ours, and an id that is taken."""
    contents = from_document(params.document)
    session = await services.sessions.create_from(contents, params.new_session_id or contents.record.session_id)
    session.log.attached()
    return SessionResult(session=session.info())


def imported_id(params: ImportSessionParams) -> str | None:
    """The id that the session will have, if the document is one."""
    if params.new_session_id is not None:
        return params.new_session_id
    session: Json = params.document.get("session")
    session_id: Json = cast("JsonObject", session).get("sessionId") if isinstance(session, dict) else None
    return session_id if isinstance(session_id, str) else None
