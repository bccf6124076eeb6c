"""`forkSession`: a new session with the messages and the state of another one, all of them or up to a run."""

from protocol.sessions import ForkSessionParams, SessionResult
from sidecar.errors import InvalidParams
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.transfer import read_part
from sidecar.stores.base import StoreError

from .services import Call, Services


async def fork_session(params: ForkSessionParams, call: Call, services: Services) -> SessionResult:
    """The source stays as it is; one that is running is forked as if its run were interrupted now."""
    if params.through_run_id is not None and params.before_run_id is not None:
        fault = {"path": "beforeRunId", "message": "only without throughRunId"}
        raise InvalidParams("give throughRunId or beforeRunId, not both", [fault])
    through, before = params.through_run_id, params.before_run_id
    ephemeral = params.ephemeral
    try:
        async with services.sessions.steady(params.session_id) as store:
            contents = await read_part(store, params.session_id, through=through, before=before)
            if ephemeral is None:  # what was to be kept nowhere stays so, unless the host says otherwise
                ephemeral = store is services.sessions.stores.ephemeral
    except StoreError as error:
        raise storage_error(error, params.session_id) from error
    session = await services.sessions.create_from(
        contents, params.new_session_id, parent=params.session_id, ephemeral=ephemeral
    )
    session.log.attached()
    return SessionResult(session=session.info())
