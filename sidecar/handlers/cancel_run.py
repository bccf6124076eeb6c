"""`cancelRun`: stop a run now; answer before it has stopped."""

from protocol.runs import CancelRunParams, CancelRunResult
from sidecar.errors import SessionLocked
from sidecar.sessions.record import RunRecord
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.views import find_joined_run
from sidecar.stores.base import Missing, StoreError

from .services import Call, Services


async def cancel_run(params: CancelRunParams, call: Call, services: Services) -> CancelRunResult:
    """Never waits for the run, and is never an error for one that has ended.

    Raises:
        SessionLocked: the run is at work in another process.
    """
    ticket = services.tickets.find(params.session_id, params.run_id)
    if ticket is not None:
        ticket.cancel()
        return CancelRunResult(status="cancelling")
    if params.run_id is None:
        return CancelRunResult(status="notRunning")
    run = await _stored(params.session_id, params.run_id, services)
    if run is None:
        return CancelRunResult(status="notRunning")
    joined = services.tickets.find(params.session_id, run.run_id)  # another one, if it was taken in there
    if joined is None and _cancel_delegated(run, params.session_id, services):
        return CancelRunResult(status="cancelling")
    if joined is None:
        return CancelRunResult(status="alreadyFinished")
    joined.cancel()
    return CancelRunResult(status="cancelling")


def _cancel_delegated(run: RunRecord, session_id: str | None, services: Services) -> bool:
    """Stop a delegated run alone, if it is at work: the run that it is a call of goes on."""
    session = services.sessions.find_open(session_id) if session_id is not None else None
    child = session.turn.children.find(run.run_id) if session is not None and session.turn is not None else None
    if child is None:
        return False
    child.cancel()
    return True


async def _stored(session_id: str | None, run_id: str, services: Services) -> RunRecord | None:
    session_id = session_id or services.tickets.one_off_session(run_id)
    if session_id is None:
        return None
    session = services.sessions.find_open(session_id)
    store = session.store if session is not None else await services.sessions.stores.durable()
    try:
        run = await find_joined_run(store, session_id, run_id)
        if run is not None and not run.ended and session is None:
            owner = (await store.load(session_id)).owner
            if owner is not None:
                raise SessionLocked(session_id, owner.pid, owner.since)
    except Missing:
        return None
    except StoreError as error:
        raise storage_error(error, session_id) from error
    return run
