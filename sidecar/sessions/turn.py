"""One run of a session, from its slot to its one end: begun in the store, executed, ended in the store, answered."""

import asyncio
import time
from collections.abc import Callable, Sequence
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
from sidecar.memory.records import write_of
from sidecar.stores.base import HideRun, Put, PutState, StoreError, Unknown
from sidecar.stores.memory_rows import MemoryWrite
from sidecar.telemetry import log_failure

from .approvals import NO_QUESTIONS, GoingOn, Parked
from .child_runs import ChildRuns, Delegator
from .event_log import is_lost
from .explaining import explanation_of
from .explanations import Explanation
from .ids import now
from .open_calls import close_calls
from .open_session import OpenSession, state_bytes
from .outlet import Outlet
from .progress_mirror import ProgressMirror
from .record import RunRecord
from .run_consent import RunConsent
from .run_host import RunHost
from .run_results import merge_options, run_result
from .storage_errors import storage_error
from .tickets import RunTicket, StopKind
from .turn_record import End, completed_data, conversation_of, ended_record, stamped
from .turn_record import stopped as stopped_by
from .turn_request import TurnRequest
from .turn_sink import TurnSink

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
        self._base = session.state()
        self._working = session.working_session()
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

    async def _ended(self, end: End) -> RunResult:
        """Store the end, send it, and make the answer of it."""
        session = self._session
        late = await self._execution.steering.end()
        await self.children.end_of(self.run_id)
        async with session.changing:
            reached("run.end.before")
            run = await self._store_all(end, () if self._is_dropped(end) else late)
            reached("run.end.after")
        if end.error is not None:
            raise end.error
        return run_result(
            run.model_copy(update={"last_seq": session.log.seq, "warnings": tuple(self._sink.warnings)}),
            session.session_id,
            tuple(self._execution.progress.answer),
            session.approvals.pending(self.run_id),
        )

    def _is_dropped(self, end: End) -> bool:
        """Whether nothing of the run stays: it failed before it had done anything."""
        return end.status == "failed" and not self._execution.progress.acted

    async def _store_all(self, end: End, late: Sequence[Message]) -> RunRecord:
        """The end, the state, and the input that came too late for a model call."""
        session, progress = self._session, self._execution.progress
        dropped = self._is_dropped(end)
        changes = [] if dropped else self._state_changes()
        is_left_open = dropped or end.stop_reason == "inputRequired"
        taken = self._going_on.said if self._going_on is not None and progress.parked_taken else ()
        said = [*taken, *progress.transcript]
        closing = None if is_left_open else close_calls(said, "cancelled", progress.batch)
        if closing is not None:
            progress.add(closing.message)
        questions = NO_QUESTIONS
        if end.stop_reason != "inputRequired":
            by = "disconnect" if end.status == "interrupted" else "cancel"
            questions = session.drop_questions(self.run_id, by)
        before = session.record
        record = before.model_copy(
            update={
                "updated_at": now(),
                "usage": before.usage + progress.meter.usage,
                "revision": before.revision + bool(changes),
                **conversation_of(progress, before),
            }
        )
        run = self._ended_record(end)
        drafts = [
            *self._sink.take(),
            *questions.drafts,
            *(closing.drafts if closing is not None else ()),
            *map(completed_draft, late),
        ]
        self._sink.close()  # what middleware has left at work would come after the run's end
        if changes:
            data: JsonObject = {"revision": record.revision, "keys": [change.key for change in changes]}
            drafts.append(Draft("state.changed", data))
        usage = {"run": progress.meter.usage.wire(), "session": record.usage.wire()}
        drafts += [
            Draft("usage.updated", usage),
            Draft("run.completed", self._completed_data(end), requests=questions.closing),
        ]

        def puts(last_seq: int) -> list[Put]:
            hidden = [HideRun(self.run_id)] if dropped else []
            return [*hidden, *changes, run.model_copy(update={"last_seq": last_seq}).put(), record.put()]

        session.record = record
        memory = [] if dropped or session.remembered is None else [*map(write_of, self._execution.memories)]
        await self._store_end(drafts, puts, memory, end)
        session.committed(changes)
        if self._going_on is not None and progress.parked_taken:
            session.approvals.drop(self._going_on.held)
        if not dropped:
            own = set(map(_id, self._input))
            later = (message for message in progress.transcript if message.message_id not in own)
            session.transcript.extend((*self._input, *later, *late))
        return run

    async def _store_end(
        self, drafts: list[Draft], puts: Callable[[int], list[Put]], memory: list[MemoryWrite], end: End
    ) -> None:
        log = self._session.log
        try:
            if self._session.lost:
                raise OwnershipLost(self._session.session_id)
            await asyncio.shield(log.append(drafts, puts, memory=memory, run_id=self.run_id))
            if memory and self._session.remembered is not None:
                self._session.remembered()
        except (StoreError, OwnershipLost) as error:
            if isinstance(error, StoreError):
                self._session.lost = self._session.lost or is_lost(error)
                told = storage_error(error, self._session.session_id)
                self._sink.warnings.append(WireWarning(kind=told.kind, message=told.message))
            log.mute_backlog(self.run_id)
            log.ephemeral("run.completed", self._completed_data(end), self.run_id)
        self._mirror.end(end.status)

    def _state_changes(self) -> list[PutState]:
        state = self._working.snapshot()
        for key, value in list(state.items()):
            try:
                state_bytes(key, value)
            except ValueError as error:
                self._sink.warn("stateDropped", f"what this run wrote there was dropped: {error}")
                state.pop(key)
                state |= {key: self._base[key]} if key in self._base else {}
        return self._session.changes(state, self._base)

    def _completed_data(self, end: End) -> JsonObject:
        return completed_data(end, self._execution.progress, self._duration_ms())

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
            duration_ms=self._duration_ms(),
            warnings=self._sink.warnings,
        )

    def _duration_ms(self) -> int:
        return round((time.monotonic() - self._clock) * 1000)


def _id(message: Message) -> str:
    return str(message.message_id)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
