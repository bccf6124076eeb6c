"""`explainRun`: what the model saw in each call of a run, and from whom; also of a run that failed, or is at work."""

from typing import NamedTuple

from protocol.explain import ExplainRunParams, ExplainRunResult
from providers.api.memory import MemoryUnavailable
from sidecar.errors import InvalidParams, RunNotFound, SessionLocked, StorageFailed
from sidecar.sessions.explanations import Expansion, Explanation
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.recalled import texts_of
from sidecar.sessions.record import RunRecord, read_record
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.transcript import Transcript
from sidecar.sessions.views import find_joined_run
from sidecar.stores.base import SessionStore, StoreError

from .services import Call, Services


class _Run(NamedTuple):
    """A run, found."""

    record: RunRecord
    agent: str
    explanation: Explanation | None
    transcript: Transcript


async def explain_run(params: ExplainRunParams, call: Call, services: Services) -> ExplainRunResult:
    """Every call, or one; none where the run made none.

    Raises:
        RunNotFound: there is no such run, or its session is not named.
        SessionLocked: the run is at work in another process.
        InvalidParams: the run has no call of that index.
        StorageFailed: the memories that it has seen cannot be read now.
    """
    session_id = params.session_id or services.tickets.one_off_session(params.run_id)
    if session_id is None:
        raise RunNotFound(params.run_id)
    session = services.sessions.find_open(session_id)
    try:
        if session is not None:
            run = await _open(session, params.run_id, services)
        else:
            run = await _stored(await services.sessions.stores.durable(), session_id, params.run_id)
        known = run.explanation
        transcript = await run.transcript.load(session_id) if known is not None and known.needs_transcript else ()
        texts = await texts_of(known.recalled if known is not None else (), services.sessions.memory)
    except MemoryUnavailable as error:
        raise StorageFailed(f"the memory cannot be used: {error}") from error
    except StoreError as error:
        raise storage_error(error, session_id) from error
    count = 0 if known is None else len(known.calls)
    if params.call is not None and params.call >= count:
        fault = {"path": "call", "message": f"the run has {count} model calls, counted from 0"}
        raise InvalidParams(f"call: {fault['message']}", [fault])
    shown = Expansion(known, transcript, run.record.started_at, texts) if known is not None else None
    return ExplainRunResult(
        run_id=run.record.run_id,
        agent=run.agent,
        calls=shown.calls(params.call) if shown is not None else (),
        providers=known.providers if known is not None else (),
    )


async def _open(session: OpenSession, run_id: str, services: Services) -> _Run:
    """A run of a session that is open here."""
    record = await find_joined_run(session.store, session.session_id, run_id)
    if record is None:
        if services.tickets.find(session.session_id, run_id) is None:
            raise RunNotFound(run_id, session.session_id)
        record = RunRecord(run_id=run_id, payload_hash="", started_at="")
    turn = session.turn
    so_far = turn.explanation(record.run_id) if turn is not None and not record.ended else None
    if so_far is not None:
        return _Run(record, so_far.agent, so_far, session.transcript)
    if not record.ended and session.log.has_backlog:  # its end could not be stored yet
        await session.log.flush()
        record = await find_joined_run(session.store, session.session_id, run_id) or record
    return _Run(record, _agent(record, session.record.agent), record.explanation, session.transcript)


async def _stored(store: SessionStore, session_id: str, run_id: str) -> _Run:
    """A run of a session that is not open here."""
    snapshot = await store.load(session_id)
    record = await find_joined_run(store, session_id, run_id)
    if record is None:
        raise RunNotFound(run_id, session_id)
    if not record.ended and snapshot.owner is not None:
        raise SessionLocked(session_id, snapshot.owner.pid, snapshot.owner.since)
    agent = _agent(record, read_record(snapshot).agent)
    return _Run(record, agent, record.explanation, Transcript(store, session_id, 0))


def _agent(record: RunRecord, otherwise: str) -> str:
    return record.explanation.agent if record.explanation is not None else otherwise
