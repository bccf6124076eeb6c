"""`getState`: a small, quick look at the process, a session or a run; works during a run and on stored sessions."""

import time
from collections.abc import Collection
from typing import Any, Final

from protocol.sessions import ActiveRun
from protocol.state import GetStateParams, GetStateResult, QueuedRun, RunState, ServerState, ToolState
from protocol.version import PROTOCOL_VERSION, VERSION
from providers.api.context import OfferedTool
from sidecar.errors import RunNotFound
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.views import (
    find_joined_run,
    open_providers,
    run_state,
    snapshot_info,
    snapshot_requests,
    snapshot_state,
    stored_providers,
)
from sidecar.stores.base import SessionStore, Snapshot, StoreError

from .services import Call, Services

DEFAULT_PARTS: Final = frozenset({"session", "run", "queue", "providers", "state", "usage", "pending"})


async def get_state(params: GetStateParams, call: Call, services: Services) -> GetStateResult:
    """Everything that was asked for, as it is at this moment."""
    parts = DEFAULT_PARTS if params.include is None else frozenset(params.include)
    fields: dict[str, Any] = {"server": server_state(services)}
    if "documents" in parts:
        await services.documents.settled()
        fields["documents"] = services.documents.list()
    session_id = params.session_id
    if session_id is None and params.run_id is not None:
        session_id = services.tickets.one_off_session(params.run_id)
        if session_id is None:
            raise RunNotFound(params.run_id)
    if session_id is None:
        return GetStateResult.model_validate(fields)
    session = services.sessions.find_open(session_id)
    if session is not None:
        if session.slot.holder is None and params.if_revision == session.record.revision:
            return GetStateResult(unchanged=True, revision=session.record.revision)
        fields |= _open_fields(session, parts)
        store, lives = session.store, True
    else:
        snapshot = await services.sessions.snapshot(session_id)
        fields |= _stored_fields(snapshot, parts)
        if fields["session"].status == "idle" and params.if_revision == fields["revision"]:
            return GetStateResult(unchanged=True, revision=fields["revision"])
        store, lives = await services.sessions.stores.durable(), snapshot.owner is not None
    if params.run_id is not None and "run" in parts:
        fields["run"] = await _run(services, store, session_id, params.run_id, owner_lives=lives)
    if "session" not in parts:
        fields.pop("session", None)
    return GetStateResult.model_validate(fields)


def server_state(services: Services) -> ServerState:
    """The process."""
    open_sessions = services.sessions.open_sessions
    return ServerState(
        instance_id=services.facts.instance_id,
        version=VERSION,
        protocol_version=PROTOCOL_VERSION,
        uptime_ms=round((time.monotonic() - services.facts.started) * 1000),
        open_sessions=len(open_sessions),
        active_runs=sum(ticket.begun for ticket in services.tickets),
        rss_bytes=rss_bytes(),
    )


def rss_bytes() -> int | None:
    """Resident memory, where the system tells."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            pages = int(file.read(64).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * 4096


def _open_fields(session: OpenSession, parts: Collection[str]) -> dict[str, Any]:
    turn = session.turn
    fields: dict[str, Any] = {
        "session": session.info(),
        "revision": session.record.revision,
        "epoch": session.record.epoch,
        "last_seq": session.log.seq,
        "active_run": None
        if turn is None
        else ActiveRun(run_id=turn.run_id, started_at=turn.started_at, stage=turn.stage),
    }
    waiting = enumerate(session.slot.waiting, start=1)
    optional: dict[str, Any] = {
        "queue": tuple(QueuedRun(run_id=ticket.run_id, position=position) for position, ticket in waiting),
        "pending": tuple(session.pending_requests()),
        "providers": open_providers(session) if "providers" in parts else None,
        "state": session.state() if "state" in parts else None,
        "usage": session.record.usage,
        "tools": tuple(_tool_state(offered) for offered in session.plan.tools) if "tools" in parts else None,
    }
    return fields | _chosen(optional, parts)


def _tool_state(offered: OfferedTool) -> ToolState:
    return ToolState(name=offered.tool.name, source=offered.source.source_id or offered.source.type)


def _stored_fields(snapshot: Snapshot, parts: Collection[str]) -> dict[str, Any]:
    info = snapshot_info(snapshot)
    fields: dict[str, Any] = {
        "session": info,
        "revision": info.revision,
        "epoch": info.epoch,
        "last_seq": snapshot.seq,
    }
    tools: tuple[ToolState, ...] = ()
    optional: dict[str, Any] = {
        "queue": (),
        "pending": snapshot_requests(snapshot),
        "providers": stored_providers(snapshot) if "providers" in parts else None,
        "state": snapshot_state(snapshot) if "state" in parts else None,
        "usage": info.usage,
        "tools": tools,
    }
    return fields | _chosen(optional, parts)


def _chosen(optional: dict[str, Any], parts: Collection[str]) -> dict[str, Any]:
    names = {"pending": "pending_requests"}
    return {names.get(part, part): value for part, value in optional.items() if part in parts}


async def _run(services: Services, store: SessionStore, session_id: str, run_id: str, *, owner_lives: bool) -> RunState:
    try:
        record = await find_joined_run(store, session_id, run_id)
    except StoreError as error:
        raise storage_error(error, session_id) from error
    if record is None:
        if services.tickets.find(session_id, run_id) is None:
            raise RunNotFound(run_id, session_id)
        return RunState(run_id=run_id, status="queued")
    return run_state(record, owner_lives=owner_lives)
