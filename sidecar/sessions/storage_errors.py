"""From what a store raises to what a host is told."""

from sidecar.errors import (
    OwnershipLost,
    SessionCorrupt,
    SessionLocked,
    SessionNotFound,
    SidecarError,
    StorageBusy,
    StorageFailed,
)
from sidecar.stores.base import (
    Damaged,
    Fenced,
    Foreign,
    Locked,
    Missing,
    Refused,
    SeqConflict,
    StoreError,
    Unavailable,
    Unknown,
)


def storage_error(error: StoreError, session_id: str) -> SidecarError:
    """The error of the contract that says the same."""
    match error:
        case Missing():
            return SessionNotFound(session_id)
        case Locked():
            return SessionLocked(session_id, error.pid, error.since)
        case Damaged():
            return SessionCorrupt(session_id, error.what, dict(error.saved))
        case Fenced():
            return OwnershipLost(session_id)
        case Unavailable(busy=True):
            return StorageBusy(f"the store is busy: {error}; try again", session_id=session_id)
        case Foreign():
            return StorageFailed(f"the store cannot be used: {error}", session_id=session_id)
        case Refused():
            return StorageFailed(f"the store refused what was to be stored: {error}", session_id=session_id)
        case SeqConflict():
            return StorageFailed(
                f"session {session_id!r} cannot be written to any more; close it and resume it", session_id=session_id
            )
        case Unknown():
            return StorageFailed(
                f"it is not known whether that was stored: {error}; close session {session_id!r} and resume it to see",
                session_id=session_id,
            )
        case _:
            return StorageFailed(
                f"nothing was stored: {error}; free space or fix the store, then send it again", session_id=session_id
            )
