"""How a run gets onto its session: the slot, a place in the queue, or into the run under way. Calls no model."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from protocol.base import JsonObject, WireModel
from protocol.errors import WireError
from protocol.messages import Usage
from protocol.runs import RunAccepted, RunResult
from protocol.sessions import WireWarning
from sidecar.agents.pairing import open_calls
from sidecar.agents.sink import Draft
from sidecar.errors import Overloaded, SessionBusy, SidecarError
from sidecar.stores.base import StoreError, Unknown

from .approvals import GoingOn, going_on
from .deciding import withdrawn
from .event_log import is_lost
from .ids import now
from .open_session import OpenSession
from .outlet import Outlet
from .record import RunRecord
from .run_results import run_result
from .slot import Place
from .storage_errors import storage_error
from .tickets import RunTicket, Tickets
from .turn import Turn
from .turn_request import TurnRequest

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
        """Run, now or later, by itself or as a part of the run under way; tell who attends the run how it ended.

        Args:
            when_busy: `reject`, `queue` or `steer`.

        Raises:
            SessionBusy: another run has the session, and this one may neither wait nor steer.
            Overloaded: too many runs wait already.
            SidecarError: the run failed.
        """
        ticket = self._ticket
        ticket.payload_hash = self._request.payload_hash
        try:
            result = await self._run(when_busy)
            if isinstance(result, RunResult):
                ticket.outcome = result
        except StoreError as error:
            ticket.outcome = storage_error(error, self._session.session_id)
            raise ticket.outcome from error
        except SidecarError as error:
            ticket.outcome = error
            raise
        else:
            return result
        finally:
            ticket.recorded.set()
            ticket.ended.set()

    async def _run(self, when_busy: str) -> RunResult | RunAccepted:
        session, ticket = self._session, self._ticket
        if session.slot.take(ticket):
            self._leave_lane()
            return await self._take_turn(await self._turn())
        holder = session.slot.holder
        if when_busy == "reject" or holder is None:
            waiting = len(session.slot.waiting)
            raise SessionBusy(session.session_id, holder.run_id if holder else "?", waiting, ("queue", "steer"))
        if when_busy == "steer" and session.turn is not None and self._request.may_join:
            steered = await self._steer(session.turn, holder)
            if steered is not None:
                return steered
            if session.slot.take(ticket):  # the run has ended meanwhile
                self._leave_lane()
                return await self._take_turn(await self._turn())
        return await self._queue()

    async def _turn(self) -> Turn:
        request = replace(self._request, on_begun=self._say_running)
        models, setup = self._session.workspace.models, self._setup
        try:
            return Turn(
                self._session,
                self._ticket,
                request,
                models,
                setup.outlet,
                keep_event_runs=setup.keep_event_runs,
                going_on=await self._going_on(),
                open_call_ids=await self._open_call_ids(),
            )
        except BaseException:
            self._session.slot.leave(self._ticket)
            raise

    async def _going_on(self) -> GoingOn | None:
        """The decided calls of an earlier run that this one begins with: those that it is for, or any that wait."""
        session = self._session
        held = self._request.goes_on_with or session.approvals.ready()
        if held is None:
            return None
        held.taken_by = self._ticket.run_id
        found: GoingOn | None = None
        try:
            found = going_on(held, await session.transcript.load(session.session_id))
        finally:
            if found is None:  # nobody goes on with them: they must not stay this run's
                held.taken_by = None
        return found

    async def _open_call_ids(self) -> frozenset[str]:
        """Of calls that wait for consent: nobody else's may be taken for them."""
        session = self._session
        if not session.approvals:
            return frozenset()
        return frozenset(open_calls(await session.transcript.load(session.session_id)))

    async def _take_turn(self, turn: Turn) -> RunResult:
        self._ticket.begun = True
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
        try:
            return await self._wait(place)
        finally:
            ticket.queued = False
            session.slot.leave(ticket)

    async def _wait(self, place: Place) -> RunResult:
        session, ticket = self._session, self._ticket
        record = RunRecord(
            run_id=ticket.run_id, payload_hash=self._request.payload_hash, started_at=now(), status="queued"
        )
        await self._record_place(place, record)
        self._accepted = None
        has_slot = await session.slot.turn_comes(ticket, place)
        ticket.queued = False
        if ticket.stop is not None or not has_slot:
            return run_result(await self._end_unbegun(record), session.session_id, ())
        turn: Turn | None = None
        try:
            await self._leave_out_known_input()
            turn = await self._turn()
            return await self._take_turn(turn)
        except (SidecarError, StoreError) as error:
            if turn is None or not turn.begun:
                told = storage_error(error, session.session_id) if isinstance(error, StoreError) else error
                await self._end_unbegun(record, told)
            raise

    async def _record_place(self, place: Place, record: RunRecord) -> None:
        """Store that the run waits: from here on it has exactly one end."""
        session = self._session
        try:
            await asyncio.shield(
                session.log.append(
                    [Draft("run.queued", {"position": place.position})],
                    [record.put()],
                    run_id=record.run_id,
                    keep=False,
                    extra=self._request.event_extra,
                    before_send=lambda last_seq: self._say_queued(place.position, last_seq),
                )
            )
        except StoreError as error:
            session.lost = session.lost or is_lost(error) or isinstance(error, Unknown)
            raise

    def _refuse_overload(self) -> None:
        setup = self._setup
        if len(self._session.slot.waiting) >= setup.max_queued:
            raise Overloaded(f"{setup.max_queued} runs wait on this session already")
        if sum(ticket.queued for ticket in setup.tickets) >= setup.max_queued_total:
            raise Overloaded(f"{setup.max_queued_total} runs wait already")

    def _say_queued(self, position: int, last_seq: int) -> None:
        self._ticket.recorded.set()
        if self._accepted is not None:
            run_id = self._ticket.run_id
            self._accepted(RunAccepted(run_id=run_id, status="queued", queue_position=position, last_seq=last_seq))

    async def _leave_out_known_input(self) -> None:
        """Runs that came before this one may have brought some of its messages."""
        given = self._request.input_messages
        if any(message.message_id is not None for message in given):
            known = {message.message_id for message in await self._session.transcript.load(self._session.session_id)}
            kept = tuple(message for message in given if message.message_id is None or message.message_id not in known)
            self._request = replace(self._request, input_messages=kept)

    async def _end_unbegun(self, record: RunRecord, error: SidecarError | None = None) -> RunRecord:
        """The run was stopped while it waited, or could not begin: it ends, and nothing of it is in the transcript."""
        session, stop = self._session, self._ticket.stop or "cancelled"
        status = "failed" if error is not None else "interrupted" if stop == "interrupted" else "cancelled"
        told = error.wire() if error is not None else None
        ended = record.model_copy(
            update={
                "status": status,
                "stop_reason": "error" if error is not None else stop,
                "ended_at": now(),
                "error": WireError.model_validate(told) if told is not None else None,
            }
        )
        data: JsonObject = {"status": status, "stopReason": ended.stop_reason, "usage": Usage().wire(), "durationMs": 0}
        if told is not None:
            data["error"] = told
        warnings: tuple[WireWarning, ...] = ()
        ends = [Draft("run.completed", data)]
        held = self._request.goes_on_with if status == "cancelled" else None
        try:
            if held is not None:
                taken_back = await withdrawn(session, held)
                ends = [*taken_back.drafts, Draft("run.completed", data, requests=taken_back.closing)]
                session.approvals.drop(held)
                session.transcript.extend(taken_back.messages)
            await asyncio.shield(
                session.log.append(
                    ends,
                    lambda last_seq: [ended.model_copy(update={"last_seq": last_seq}).put()],
                    run_id=record.run_id,
                )
            )
        except StoreError as fault:
            session.lost = session.lost or is_lost(fault)
            session.log.mute_backlog(record.run_id)
            session.log.ephemeral("run.completed", data, record.run_id)
            failure = storage_error(fault, session.session_id)
            warnings = (WireWarning(kind=failure.kind, message=failure.message),)
        return ended.model_copy(update={"last_seq": session.log.seq, "warnings": warnings})

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
        return await attend(holder, self._ticket)


async def attend(live: RunTicket, ticket: RunTicket) -> RunResult:
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
        ended.cancel()
        stopped.cancel()
    return answer_of(live)


def answer_of(ended: RunTicket) -> RunResult:
    """What a run that has ended was answered.

    Raises:
        SidecarError: it failed.
    """
    if isinstance(ended.outcome, RunResult):
        return ended.outcome
    raise ended.outcome or SidecarError(f"run {ended.run_id!r} was cut off")
