"""One run of a session, from its slot to its one end: begun in the store, executed, ended in the store, answered."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message
from protocol.runs import RunResult
from protocol.sessions import WireWarning
from sidecar.agents.loop import completed_draft
from sidecar.agents.metering import Meter
from sidecar.agents.run_request import ModelSource, RunRequest
from sidecar.agents.runner import Execution
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.errors import OwnershipLost, SidecarError
from sidecar.stores.base import Put, StoreError, Unknown
from sidecar.telemetry import log_failure

from .approvals import GoingOn, Parked
from .child_runs import ChildRuns, Delegator
from .event_log import is_lost
from .explaining import explanation_of
from .explanations import Explanation
from .ids import new_id, now
from .open_session import OpenSession
from .outlet import Outlet
from .progress_mirror import ProgressMirror
from .record import RunRecord
from .run_consent import RunConsent
from .run_host import RunHost
from .run_results import merge_options, run_result
from .storage_errors import storage_error
from .tickets import RunTicket, StopKind
from .turn_record import End, ended_record, stamped
from .turn_record import stopped as stopped_by
from .turn_request import TurnRequest
from .turn_sink import TurnSink
from .turn_store import TurnStore

ABANDON_AFTER_S: Final = 0.5
"""A run that ignores its cancellation is given up after this."""
FAILURE_HOOKS_S: Final = 2.0
"""For all failure hooks of a run together; a fifth of it when the process is ending."""


class Turn:
    """A run that has its session's slot. `run` is called once."""

    def __init__(
        self,
        session: OpenSession,
        ticket: RunTicket,
        request: TurnRequest,
        models: ModelSource,
        outlet: Outlet,
        *,
        keep_event_runs: int,
        going_on: GoingOn | None = None,
        open_call_ids: frozenset[str] = frozenset(),
    ) -> None:
        self.run_id = ticket.run_id
        self.payload_hash = request.payload_hash
        self.started_at = now()
        self.begun = False
        """It is stored: it has exactly one end."""
        self._settled = asyncio.Event()  # it has begun, or will not
        self._session = session
        self._ticket = ticket
        self._request = request
        self._models = models
        self._keep_event_runs = keep_event_runs
        self._clock = time.monotonic()
        self._mirror = ProgressMirror(outlet.notify, request.work_done_token, request.partial_result_token)
        self._sink = TurnSink(session.log, self.run_id, outlet, self._mirror, stream=request.stream)
        self._input = tuple(stamped(message, self.run_id, self.started_at) for message in request.input_messages)
        self._steered: tuple[Message, ...] = ()
        self._going_on = going_on
        self._working = session.working_session()
        self._store = TurnStore(session, self._sink, self._mirror, self.run_id, self._working, self._input, going_on)
        self.children = ChildRuns(session, models, outlet, lambda: ticket.stop)
        """What this run delegates to other agents."""
        host = RunHost(session.requests, self._sink, outlet, session.session_id, self.run_id, lambda: ticket.stop)
        own = Delegator(
            self.run_id, self._working, not session.one_off, request.properties or {}, request.stream, Meter()
        )
        self._consent = RunConsent(
            session,
            self._sink,
            outlet,
            self.run_id,
            session.plan.name,
            session.plan.approvals,
            lambda: self._execution.progress,
            None if session.one_off or session.is_ephemeral else self._what_to_keep,
        )
        self._execution = Execution(
            session.plan,
            RunRequest(
                run_id=self.run_id,
                input_messages=self._input if going_on is None else going_on.input_messages,
                options=merge_options(session.plan.options, request.options, session.record),
                run_instructions=request.options.instructions,
                response_schema=request.response_schema,
                client_kwargs=request.client_kwargs or {},
                kwargs=request.kwargs or {},
                middleware=request.middleware,
                is_streaming=request.stream,
                context_messages=request.context_messages,
                properties=own.properties,
                delegate=partial(self.children.delegate, own),
                meter=own.meter,
                host=host,
                consent=self._consent,
                parked=going_on.answer if going_on is not None else None,
                parked_messages=going_on.said if going_on is not None else (),
                joining=self._input if going_on is not None else (),
                open_call_ids=open_call_ids,
            ),
            self._working,
            None if session.one_off else session.session_id,
            models,
            self._sink,
            session.stats,
        )

    @property
    def stage(self) -> str:
        """What the run is doing."""
        return self._execution.progress.stage

    def explanation(self, run_id: str) -> Explanation | None:
        """What the model calls of this run, or of one that it delegated, have seen so far; `None` if it is neither."""
        if run_id == self.run_id:
            return explanation_of(self._execution.progress.meter.calls, self._session.plan.name)
        child = self.children.find(run_id)
        return child.explanation() if child is not None else None

    def cancel(self) -> None:
        """Ask the run to stop."""
        self._ticket.cancel()

    async def run(self) -> RunResult:
        """Do the run and end it.

        Raises:
            SidecarError: the run failed, or could not begin.
        """
        try:
            await self._begin()
            return await self._ended(await self._execute())
        finally:
            self._settled.set()
            self._sink.close()
            self._let_go()
            if self._session.one_off:
                await self._session.lifetimes.leave()
            self._session.turn = None
            self._session.slot.leave(self._ticket)

    async def steer(self, messages: Sequence[Message], alias: RunRecord | None = None) -> bool:
        """Take input into the run while it works; it joins the next model call.

        Args:
            messages: The input, as a host sends it. A message that the session has already is left out.
            alias: Another run's record to store along: that run was taken into this one.

        Returns:
            False if the run has had its last model call.

        Raises:
            StorageFailed: the input could not be stored, and does not join.
        """
        await self._settled.wait()
        if not self.begun:
            return False

        async def store() -> Sequence[Message]:
            joining = await self._new(messages)
            steered = (*self._steered, *joining)
            puts: list[Put] = [self._record(steered).put(), *([alias.put()] if alias is not None else ())]
            await asyncio.shield(self._session.log.append([], puts, run_id=self.run_id, keep=False))
            self._steered = steered
            return joining

        try:
            return await self._execution.steering.offer(store)
        except StoreError as error:
            raise storage_error(error, self._session.session_id) from error

    async def _new(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Those that neither the transcript nor this run has."""
        session = self._session
        stored = await session.transcript.load(session.session_id)
        known = {message.message_id for message in (*stored, *self._input, *self._steered)} - {None}
        new = (message for message in messages if message.message_id not in known)
        return tuple(stamped(message, self.run_id, now()) for message in new)

    async def _begin(self) -> None:
        """Store the run and its input: from here on it has exactly one end. No model call without that.

        Raises:
            StorageFailed: the store did not take it; nothing of the run exists.
        """
        session = self._session
        self._execution.progress.meter.calls.transcript = await session.transcript.load(session.session_id)
        async with session.changing:
            reached("run.begin.before")
            await self._store_begin()
            reached("run.begin.after")
        self.begun = True
        self._settled.set()
        self._mirror.begin(session.plan.name)

    async def _store_begin(self) -> None:
        session, record = self._session, self._session.record
        starts = (*record.run_starts, session.log.next_seq)
        kept = starts[-self._keep_event_runs :]
        record = record.model_copy(update={"updated_at": self.started_at, "run_starts": kept})
        data: JsonObject = {"agent": session.plan.name}
        model = self._request.options.model or record.model or session.plan.model
        if model is not None:
            data["model"] = model
        try:
            await asyncio.shield(
                session.log.append(
                    [Draft("run.started", data), *map(completed_draft, self._input)],
                    [self._record(()).put(), record.put()],
                    run_id=self.run_id,
                    prune_through=kept[0] - 1 if len(kept) < len(starts) else 0,
                    keep=False,
                    extra=self._request.event_extra,
                    before_send=self._request.on_begun,
                )
            )
        except StoreError as error:
            # Where it is not known whether the run exists, resuming the session settles it.
            session.lost = session.lost or is_lost(error) or isinstance(error, Unknown)
            raise storage_error(error, session.session_id) from error
        session.record = record

    async def _execute(self) -> End:
        """Let the agent work until it is done, fails, or is told to stop."""
        if self._ticket.stop is not None:
            return stopped_by(self._ticket.stop)
        work = asyncio.create_task(self._work(), name=f"run {self.run_id}")
        stop = await self._supervise(work)
        progress = self._execution.progress
        if work.done() and not work.cancelled():
            failure = work.exception()
            if failure is None or progress.answered:
                return End("completed", progress.stop_reason)
            return await self._failed(failure)
        if progress.answered:
            self._sink.warn("hooksStopped", "the run was told to stop while its afterRun hooks were working")
            return End("completed", progress.stop_reason)
        if stop == "interrupted" and self._waits_for_approvals():
            progress.is_parked, progress.stop_reason = True, "inputRequired"
            return End("completed", progress.stop_reason)
        await self._tell_providers(RuntimeError(f"the run was stopped: {stop}"))
        return stopped_by(stop or "cancelled")

    def _waits_for_approvals(self) -> bool:
        """Whether nothing but a person's decision is missing: such a run is parked, not cut."""
        held = self._session.approvals.of_run(self.run_id)
        return self._execution.progress.stage == "approval" and any(one.parked is not None for one in held)

    def _what_to_keep(self) -> Parked:
        """What a run needs that goes on from this one, if it ends with questions about its last answer."""
        progress, going_on = self._execution.progress, self._going_on
        earlier = going_on.parked if going_on is not None else None
        inputs = (*(earlier.input_ids if earlier is not None else ()), *map(_id, self._input))
        outputs = (*(earlier.output_ids if earlier is not None else ()), *map(_id, progress.messages))
        return Parked(
            message_id=_id(progress.messages[-1]),
            run_id=self.run_id,
            next_run_id=new_id("run"),
            input_ids=inputs,
            output_ids=outputs,
            options=self._request.options,
            response_schema=self._request.response_schema,
        )

    def _let_go(self) -> None:
        """What this run asked, or was to go on with, is anybody's now, if it is still there."""
        held = self._session.approvals.of_run(self.run_id)
        for one in (*held, *((self._going_on.held,) if self._going_on is not None else ())):
            if one.taken_by == self.run_id:
                one.taken_by = None

    async def _work(self) -> None:
        if self._request.only_decides and self._going_on is None:
            self._execution.progress.stop_reason = "inputRequired"  # other decisions are still to come
            return
        await self._session.lifetimes.enter(self._session.plan)
        await self._execution.run()

    async def _supervise(self, work: asyncio.Task[None]) -> StopKind | None:
        """Wait for the work, a stop or the time limit; stop the work in the last two cases."""
        stopped = asyncio.create_task(self._ticket.stopped())
        limit = self._request.timeout_ms
        try:
            await asyncio.wait(
                {work, stopped}, timeout=None if limit is None else limit / 1000, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopped.cancel()
        if work.done():
            return None
        self._ticket.cancel("timeout")
        work.cancel()
        await asyncio.wait({work}, timeout=ABANDON_AFTER_S)
        if not work.done():
            self._sink.warn("abandoned", "a part of the run ignored its cancellation and was left behind")
            work.add_done_callback(_retrieve)
        return self._ticket.stop

    async def _failed(self, failure: BaseException) -> End:
        error = failure if isinstance(failure, SidecarError) else SidecarError("internal error")
        if error is not failure:
            log_failure(f"run {self.run_id}", failure, error.error_id)
        if isinstance(error, OwnershipLost):
            self._session.lost = True
            self._sink.warnings.append(WireWarning(kind=error.kind, message=error.message))
            return End("interrupted", "interrupted")
        error.fields.setdefault("session_id", self._session.session_id)
        error.fields.setdefault("run_id", self.run_id)
        await self._tell_providers(error)
        return End("failed", "error", error)

    async def _tell_providers(self, error: Exception) -> None:
        limit = FAILURE_HOOKS_S / (5 if self._ticket.stop == "interrupted" else 1)
        hooks = asyncio.create_task(self._execution.failed(error))
        hooks.add_done_callback(_retrieve)
        await asyncio.wait({hooks}, timeout=limit)
        hooks.cancel()
        await asyncio.wait({hooks}, timeout=limit / 4)  # what it has asked the host is told to be over

    async def _ended(self, end: End) -> RunResult:
        """Store the end, send it, and make the answer of it."""
        session = self._session
        late = await self._execution.steering.end()
        await self.children.end_of(self.run_id)
        async with session.changing:
            reached("run.end.before")
            run = await self._store.end(
                end, self._execution.progress, self._ended_record, late, self._execution.memories
            )
            reached("run.end.after")
        if end.error is not None:
            raise end.error
        return run_result(
            run.model_copy(update={"last_seq": session.log.seq, "warnings": tuple(self._sink.warnings)}),
            session.session_id,
            tuple(self._execution.progress.answer),
            session.approvals.pending(self.run_id),
        )

    def _record(self, steered: tuple[Message, ...]) -> RunRecord:
        return RunRecord(
            run_id=self.run_id,
            payload_hash=self.payload_hash,
            started_at=self.started_at,
            input_ids=tuple(str(message.message_id) for message in self._input),
            steered=steered,
            resumes=None
            if self._going_on is None
            else {"runId": self._going_on.parked.run_id, "messageId": self._going_on.parked.message_id},
        )

    def _ended_record(self, end: End) -> RunRecord:
        return ended_record(
            self._record(self._steered),
            end,
            self._execution.progress,
            agent=self._session.plan.name,
            wants_value=self._request.response_schema is not None,
            duration_ms=round((time.monotonic() - self._clock) * 1000),
            warnings=self._sink.warnings,
        )


def _id(message: Message) -> str:
    return str(message.message_id)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
