"""`resumeSession`: open a stored session here, and replay what the client has not seen."""

from collections.abc import Sequence

from protocol.sessions import ActiveRun, ReplayNone, ReplaySeq, ResumeSessionParams, ResumeSessionResult
from sidecar.errors import CapabilityRequired, CursorExpired
from sidecar.sessions.manager import Opened
from sidecar.sessions.open_session import OpenSession

from .going_on import keep_promises
from .services import Call, Reply, Services


async def resume_session(params: ResumeSessionParams, call: Call, services: Services) -> Reply:
    """Answer first, then replay; nothing new of the session is sent in between."""
    if params.mcp_servers:
        raise CapabilityRequired("mcp", "resumeSession with 'mcpServers'")
    opened = await services.sessions.resume(params.session_id, params.tools, params.context_providers)
    session = opened.session
    first_kept = (await services.sessions.snapshot(params.session_id)).first_seq
    models = await services.model_names(session)
    await session.log.lock.acquire()
    try:
        after = _cursor(params, session)
        through = session.log.seq
        truncated = after is not None and after + 1 < first_kept
        start = through if after is None else after
        result = _answer(opened, models, truncated=truncated)
    except BaseException:
        session.log.lock.release()
        raise

    async def replay() -> None:
        try:
            session.log.attached(await session.log.replay(start, through, services.pages.bytes))
        finally:
            session.log.lock.release()
        call.leave_lane()
        await keep_promises(session, services)

    return Reply(result, replay)


def _cursor(params: ResumeSessionParams, session: OpenSession) -> int | None:
    """The seq after which to replay; `None` for no replay."""
    replay_from = params.replay_from
    if isinstance(replay_from, ReplayNone):
        return None
    if not isinstance(replay_from, ReplaySeq):
        return 0
    if replay_from.epoch != session.record.epoch:
        raise CursorExpired(
            "the cursor is of another epoch of this session; replay from start",
            session_id=params.session_id,
            epoch=session.record.epoch,
        )
    if replay_from.seq > session.log.seq:
        raise CursorExpired(
            f"the session's last event is {session.log.seq}; replay from start", session_id=params.session_id
        )
    return replay_from.seq


def _answer(opened: Opened, models: Sequence[str], *, truncated: bool) -> ResumeSessionResult:
    session = opened.session
    turn = session.turn
    return ResumeSessionResult(
        session=session.info(),
        config_options=session.config_options(models),
        providers=session.provider_statuses(),
        active_run=None if turn is None else ActiveRun(run_id=turn.run_id, started_at=turn.started_at),
        pending_requests=tuple(session.pending_requests()),
        last_seq=session.log.seq,
        truncated=truncated,
        recovered=opened.recovered,
        warnings=tuple(opened.warnings) or None,
    )
