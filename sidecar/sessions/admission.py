"""How a run gets onto its session: the slot, a place in the queue, or into the run under way. Calls no model."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from protocol.base import WireModel
from protocol.messages import Usage
from protocol.runs import RunAccepted, RunResult
from sidecar.agents.sink import Draft
from sidecar.errors import Overloaded, SessionBusy
from sidecar.sessions.ids import now
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.outlet import Outlet
from sidecar.sessions.record import RunRecord
from sidecar.sessions.run_results import run_result
from sidecar.sessions.storage_errors import storage_error
from sidecar.sessions.tickets import RunTicket, Tickets
from sidecar.sessions.turn import Turn, TurnRequest
from sidecar.sessions.views import stored_result
from sidecar.stores.base import StoreError

Accepted = Callable[[WireModel], None]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What every run of the process needs."""

    outlet: Outlet
    tickets: Tickets
    keep_event_runs: int
    max_queued: int
    """Runs that may wait on one session."""
    max_queued_total: int


class Admission:
    """One run on its way onto its session. `run` is called once."""

    def __init__(
        self,
        session: OpenSession,
        ticket: RunTicket,
        request: TurnRequest,
        setup: RunSetup,
        leave_lane: Callable[[], None],
        accepted: Accepted | None,
    ) -> None:
        self._session = session
        self._ticket = ticket
        self._request = request
        self._setup = setup
        self._leave_lane = leave_lane
        self._accepted = accepted

    async def run(self, when_busy: str) -> RunResult | RunAccepted:
        """Do what `_run` says, and tell who attends the run when it has ended."""
        self._ticket.payload_hash = self._request.payload_hash
        try:
            return await self._run(when_busy)
        finally:
            self._ticket.recorded.set()
            self._ticket.ended.set()

    async def _run(self, when_busy: str) -> RunResult | RunAccepted:
        """Run, now or later, by itself or as a part of the run under way.

        Args:
            when_busy: `reject`, `queue` or `steer`.

        Raises:
            SessionBusy: another run has the session, and this one may neither wait nor steer.
            Overloaded: too many runs wait already.
            SidecarError: the run failed.
        """
        session, ticket = self._session, self._ticket
        if session.slot.take(ticket):
            self._leave_lane()
            return await self._turn()
        holder = session.slot.holder
        if when_busy == "reject" or holder is None:
            waiting = len(session.slot.waiting)
            raise SessionBusy(session.session_id, holder.run_id if holder else "?", waiting, ("queue", "steer"))
        if when_busy == "steer" and session.turn is not None:
            steered = await self._steer(session.turn, holder)
            if steered is not None:
                return steered
            if session.slot.take(ticket):  # the run has ended meanwhile
                self._leave_lane()
                return await self._turn()
        return await self._queue()

    async def _turn(self) -> RunResult:
        request = replace(self._request, on_begun=self._say_running)
        self._ticket.begun = True
        try:
            turn = Turn(
                self._session,
                self._ticket,
                request,
                self._session.workspace.models,
                self._setup.outlet,
                keep_event_runs=self._setup.keep_event_runs,
            )
        except BaseException:
            self._session.slot.leave(self._ticket)
            raise
        self._session.turn = turn
        return await turn.run()

    def _say_running(self, last_seq: int) -> None:
        self._ticket.recorded.set()
        if self._accepted is not None:
            self._accepted(RunAccepted(run_id=self._ticket.run_id, status="running", last_seq=last_seq))

    # ---- queue ----------------------------------------------------------------------------------------------------

    async def _queue(self) -> RunResult:
        session, ticket = self._session, self._ticket
        self._refuse_overload()
        place = session.slot.join(ticket)
        ticket.queued = True
        self._leave_lane()
        record = RunRecord(
            run_id=ticket.run_id, payload_hash=self._request.payload_hash, started_at=now(), status="queued"
        )
        try:
            await asyncio.shield(
                session.log.append(
                    [Draft("run.queued", {"position": place})],
                    [record.put()],
                    run_id=ticket.run_id,
                    keep=False,
                    extra=self._request.event_extra,
                    before_send=lambda last_seq: self._say_queued(place, last_seq),
                )
            )
        except StoreError as error:
            ticket.cancel()
            await session.slot.turn_comes(ticket)
            session.slot.leave(ticket)
            raise storage_error(error, session.session_id) from error
        self._accepted = None
        has_slot = await session.slot.turn_comes(ticket)
        ticket.queued = False
        if has_slot:
            return await self._turn()
        return await self._end_unbegun(record)

    def _refuse_overload(self) -> None:
        setup = self._setup
        if len(self._session.slot.waiting) >= setup.max_queued:
            raise Overloaded(f"{setup.max_queued} runs wait on this session already")
        if sum(ticket.queued for ticket in setup.tickets) >= setup.max_queued_total:
            raise Overloaded(f"{setup.max_queued_total} runs wait already")

    def _say_queued(self, place: int, last_seq: int) -> None:
        self._ticket.recorded.set()
        if self._accepted is not None:
            self._accepted(
                RunAccepted(run_id=self._ticket.run_id, status="queued", queue_position=place, last_seq=last_seq)
            )

    async def _end_unbegun(self, record: RunRecord) -> RunResult:
        """The run was stopped while it waited: it ends, and nothing of it is in the transcript."""
        session, stop = self._session, self._ticket.stop or "cancelled"
        status = "interrupted" if stop == "interrupted" else "cancelled"
        ended = record.model_copy(update={"status": status, "stop_reason": stop, "ended_at": now()})
        data = {"status": status, "stopReason": stop, "usage": Usage().wire(), "durationMs": 0}
        try:
            await session.log.append(
                [Draft("run.completed", data)],
                lambda last_seq: [ended.model_copy(update={"last_seq": last_seq}).put()],
                run_id=record.run_id,
            )
        except StoreError as error:
            session.log.mute_backlog()
            session.log.ephemeral("run.completed", data, record.run_id)
            raise storage_error(error, session.session_id) from error
        return run_result(ended.model_copy(update={"last_seq": session.log.seq}), session.session_id, ())

    # ---- steering -------------------------------------------------------------------------------------------------

    async def _steer(self, turn: Turn, holder: RunTicket) -> RunResult | RunAccepted | None:
        """Be taken into the run under way, and answered as it is; `None` if it takes nothing more."""
        alias = RunRecord(
            run_id=self._ticket.run_id,
            payload_hash=self._request.payload_hash,
            started_at=now(),
            status="completed",
            alias_of=turn.run_id,
        )
        if not await turn.steer(self._request.input_messages, alias):
            return None
        self._leave_lane()
        if self._accepted is not None:
            return RunAccepted(run_id=turn.run_id, status="running", last_seq=self._session.log.seq)
        return await attend(holder, self._ticket, self._session)


async def attend(live: RunTicket, ticket: RunTicket, session: OpenSession) -> RunResult:
    """Wait for a run that another request started; who attends it may also stop it.

    Raises:
        SidecarError: the run failed.
    """
    ended = asyncio.create_task(live.ended.wait())
    stopped = asyncio.create_task(ticket.stopped())
    try:
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if ticket.stop is not None:
            live.cancel(ticket.stop)
        await ended
    finally:
        stopped.cancel()
    try:
        return await stored_result(session.store, session.session_id, live.run_id)
    except StoreError as error:
        raise storage_error(error, session.session_id) from error
