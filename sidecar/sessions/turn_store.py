"""Writes what a turn leaves behind, as one unit: its end, state and memories, and how its open calls were closed."""

import asyncio
from collections.abc import Callable, Sequence

from pydantic_core import from_json

from protocol.base import JsonObject
from protocol.messages import Message
from protocol.sessions import WireWarning
from providers.api.memory import MemoryRecord
from providers.api.session import Session
from sidecar.agents.loop import completed_draft
from sidecar.agents.output import Progress
from sidecar.agents.sink import Draft
from sidecar.errors import OwnershipLost
from sidecar.memory.records import write_of
from sidecar.stores.base import HideRun, Put, PutState, StoreError
from sidecar.stores.memory_rows import MemoryWrite

from .approvals import NO_QUESTIONS, Dropped, GoingOn
from .event_log import is_lost
from .ids import now
from .modes import has_modes, told
from .open_calls import Closing, close_calls
from .open_session import OpenSession
from .progress_mirror import ProgressMirror
from .record import RunRecord
from .state_bytes import state_bytes
from .storage_errors import storage_error
from .turn_record import End, completed_data, conversation_of
from .turn_sink import TurnSink


class TurnStore:
    """The end of one turn, on its way into the store. `end` is called once."""

    def __init__(
        self,
        session: OpenSession,
        sink: TurnSink,
        mirror: ProgressMirror,
        run_id: str,
        working: Session,
        own_input: Sequence[Message],
        going_on: GoingOn | None,
    ) -> None:
        """Nothing is written yet.

        Args:
            session: The session.
            sink: Has what is still to be told.
            mirror: Tells of the end, where a client asked for progress.
            run_id: The run.
            working: The state that it works on, as it begins.
            own_input: Its input, as it is stored.
            going_on: The calls of an earlier run that it goes on with.
        """
        self._session = session
        self._sink = sink
        self._mirror = mirror
        self._run_id = run_id
        self._working = working
        self._base = session.state()
        self._input = own_input
        self._going_on = going_on

    async def end(
        self,
        end: End,
        progress: Progress,
        ended: Callable[[End], RunRecord],
        late: Sequence[Message],
        memories: Sequence[MemoryRecord],
    ) -> RunRecord:
        """Store the end, and tell it; a failure of the store costs no reply.

        Args:
            end: How the turn ended.
            progress: How far it came.
            ended: Makes its record, once everything is said.
            late: Input that came too late for a model call.
            memories: What is to be remembered.
        """
        session = self._session
        dropped = end.status == "failed" and not progress.acted  # it failed before it had done anything
        late = () if dropped else late
        changes = [] if dropped else self._state_changes()
        if end.status == "cancelled":
            progress.parked_taken = True  # no later run does what was decided for this one
        closing = None if dropped or end.stop_reason == "inputRequired" else self._closing(progress)
        questions = self._dropped_questions(end)
        taken = self._going_on if progress.parked_taken else None
        unasked = (*questions.closing, *(taken.answer.closing if taken is not None else ()))
        before = session.record
        session.record = record = before.model_copy(
            update={
                "updated_at": now(),
                "usage": before.usage + progress.meter.usage,
                "revision": before.revision + bool(changes),
                **conversation_of(progress, before),
            }
        )
        run = ended(end)
        drafts = [
            *self._sink.take(),
            *questions.drafts,
            *(closing.drafts if closing is not None else ()),
            *map(completed_draft, late),
        ]
        self._sink.close()  # what middleware has left at work would come after the run's end
        if changes:
            data: JsonObject = {"revision": record.revision, "keys": [change.key for change in changes]}
            drafts += [Draft("state.changed", data), *self._mode_changed(changes)]
        meter = progress.meter
        usage: JsonObject = {"run": meter.usage.wire(), "session": record.usage.wire(), **meter.context()}
        completed = completed_data(end, progress, run.duration_ms)
        drafts += [Draft("usage.updated", usage), Draft("run.completed", completed, requests=unasked)]

        def puts(last_seq: int) -> list[Put]:
            hidden = [HideRun(self._run_id)] if dropped else []
            return [*hidden, *changes, run.model_copy(update={"last_seq": last_seq}).put(), record.put()]

        memory = [] if dropped or session.remembered is None else [*map(write_of, memories)]
        await self._append(drafts, puts, memory, completed)
        self._mirror.end(end.status)
        session.committed(changes)
        if taken is not None:
            session.approvals.drop(taken.held)
        if not dropped:
            own = {message.message_id for message in self._input}
            later = (message for message in progress.transcript if message.message_id not in own)
            session.transcript.extend((*self._input, *later, *late))
        return run

    def _closing(self, progress: Progress) -> Closing | None:
        """One result for each call that has none, those of an earlier run that this one has taken over among them."""
        taken = self._going_on.said if self._going_on is not None and progress.parked_taken else ()
        closing = close_calls([*taken, *progress.transcript], "cancelled", progress.batch)
        if closing is not None:
            progress.add(closing.message)
        return closing

    def _dropped_questions(self, end: End) -> Dropped:
        if end.stop_reason == "inputRequired":
            return NO_QUESTIONS
        return self._session.drop_questions(self._run_id, "disconnect" if end.status == "interrupted" else "cancel")

    async def _append(
        self, drafts: list[Draft], puts: Callable[[int], list[Put]], memory: list[MemoryWrite], completed: JsonObject
    ) -> None:
        session, log = self._session, self._session.log
        try:
            if session.lost:
                raise OwnershipLost(session.session_id)
            await asyncio.shield(log.append(drafts, puts, memory=memory, run_id=self._run_id))
            if memory and session.remembered is not None:
                session.remembered()
        except (StoreError, OwnershipLost) as error:
            if isinstance(error, StoreError):
                session.lost = session.lost or is_lost(error)
                told = storage_error(error, session.session_id)
                self._sink.warnings.append(WireWarning(kind=told.kind, message=told.message))
            log.mute_backlog(self._run_id)
            log.ephemeral("run.completed", completed, self._run_id)

    def _mode_changed(self, changes: Sequence[PutState]) -> list[Draft]:
        """What of this run's writes switches the session's mode, whatever the host has done meanwhile."""
        if not has_modes(self._session.plan):
            return []
        before = self._session.state()
        written = {change.key: from_json(change.value) for change in changes if change.value is not None}
        return told(self._session.plan, before, {**before, **written}, "model")

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
