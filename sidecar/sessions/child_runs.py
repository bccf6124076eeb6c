"""The runs that a turn delegates to other agents, however deep: begun and ended in its log, without a slot of theirs.

A delegated run is a run like any other, with its own id, record and events. Its caller is told how it ended by its
text or by an error; what of it is still under way when its caller ends, ends before that.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message, Source, text_message
from providers.api.delegation import Errand
from providers.api.session import Session
from providers.api.tool import ToolError
from sidecar.agents.delegation import Child, make_child
from sidecar.agents.loop import completed_draft
from sidecar.agents.metering import Meter
from sidecar.agents.run_request import ModelSource, RunRequest
from sidecar.agents.runner import Execution
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.errors import OwnershipLost, SidecarError
from sidecar.stores.base import Put, StoreError, Unknown
from sidecar.telemetry import log_failure

from .envelopes import Caller
from .event_log import is_lost
from .explaining import explanation_of
from .explanations import Explanation
from .ids import new_id, now
from .open_calls import close_calls
from .open_session import OpenSession
from .outlet import Outlet
from .progress_mirror import ProgressMirror
from .provider_lifetimes import ProviderLifetimes
from .record import RunRecord
from .run_consent import RunConsent
from .run_host import RunHost
from .tickets import StopKind
from .turn_record import End, completed_data, ended_record, stopped
from .turn_sink import TurnSink

ABANDON_AFTER_S: Final = 0.4
"""A delegated run that ignores its cancellation is given up after this: before its caller is."""
FAILURE_HOOKS_S: Final = 2.0
"""For all failure hooks of a delegated run together."""
STOPPED_HOOKS_S: Final = 0.2
"""The same where it was stopped: its caller waits for its end."""

TOO_DEEP: Final = "Agent {agent!r} was not called: agents may call agents {limit} deep, and this is deeper."
NOT_STORED: Final = "Agent {agent!r} was not called: it could not be recorded. Try again later."
TOO_LATE: Final = "Agent {agent!r} was not called: the run that asks for it has ended."


@dataclass(frozen=True, slots=True)
class Delegator:
    """A run that may have things done by other agents."""

    run_id: str
    session: Session
    has_session: bool
    """False in a one-off run: nobody sees the session."""
    properties: JsonObject
    is_streaming: bool
    meter: Meter
    depth: int = 0


class ChildRuns:
    """The delegated runs of one turn."""

    def __init__(
        self, session: OpenSession, models: ModelSource, outlet: Outlet, why_stopped: Callable[[], StopKind | None]
    ) -> None:
        """Nothing is delegated yet.

        Args:
            session: The turn's.
            models: Where the other agents find their models.
            outlet: The way to the client.
            why_stopped: Why the turn is to stop; `None` while it is not.
        """
        self.session = session
        self.models = models
        self.outlet = outlet
        self.why_stopped = why_stopped
        self._live: dict[str, ChildRun] = {}
        self._over: set[str] = set()

    async def delegate(self, by: Delegator, errand: Errand) -> str:
        """Have an errand done, and give the other agent's text.

        Raises:
            ToolError: it could not be begun, or did not complete; the text is for the model that asked.
            OwnershipLost: the session is another process's by now.
        """
        workspace, agent = self.session.workspace, errand.agent
        limit = workspace.limits.delegation_depth
        if by.depth >= limit:
            raise ToolError(TOO_DEEP.format(agent=agent, limit=limit))
        run_id = new_id("run")
        try:
            made = await make_child(workspace, errand, by.session, run_id, self.session.record.cwd)
        except SidecarError as error:
            raise ToolError(f"Agent {agent!r} cannot be called: {error.message}") from error
        if by.run_id in self._over:
            raise ToolError(TOO_LATE.format(agent=agent))
        child = self._live[run_id] = ChildRun(self, by, errand, run_id, made)
        try:
            return await child.run()
        finally:
            if child.is_over:
                del self._live[run_id]

    def find(self, run_id: str) -> "ChildRun | None":
        """A delegated run that is under way."""
        return self._live.get(run_id)

    async def end_of(self, run_id: str) -> None:
        """This run ends: end what it has delegated, and let it delegate no more."""
        self._over.add(run_id)
        for child in [child for child in self._live.values() if child.caller.run_id == run_id]:
            await child.stop()


class ChildRun:
    """One delegated run. `run` is called once."""

    def __init__(self, runs: ChildRuns, by: Delegator, errand: Errand, run_id: str, made: Child) -> None:
        self.run_id = run_id
        self.caller = Caller(by.run_id, errand.call_id)
        self.is_over = False
        """It has ended, or will not begin."""
        self._runs = runs
        self._agent = made.plan.name
        self._made = made
        self._lifetimes = ProviderLifetimes()
        self._is_stopping = False
        self._work: asyncio.Task[None] | None = None
        self._started_at = now()
        self._clock = time.monotonic()
        self._changing = asyncio.Lock()
        self._begun = False
        outlet, log = runs.outlet, runs.session.log
        silent = ProgressMirror(outlet.notify, None, None)
        self._sink = TurnSink(log, run_id, outlet, silent, stream=by.is_streaming, caller=self.caller)
        self._input = _input(errand.task, run_id, self._started_at)
        meter = Meter(within=by.meter)
        requests, session_id = runs.session.requests, runs.session.session_id
        has_session = not errand.propagate_session or by.has_session
        own = Delegator(run_id, made.session, has_session, by.properties, by.is_streaming, meter, by.depth + 1)
        self._execution = Execution(
            made.plan,
            RunRequest(
                run_id=run_id,
                input_messages=(self._input,),
                options=made.plan.options.model_copy(update={"instructions": None}),
                kwargs=dict(errand.kwargs),
                properties=by.properties,
                parent_run_id=by.run_id,
                depth=own.depth,
                delegate=partial(runs.delegate, own),
                shares_state=made.shares_state,
                meter=meter,
                consent=RunConsent(
                    runs.session,
                    self._sink,
                    outlet,
                    run_id,
                    made.plan.name,
                    made.plan.approvals,
                    lambda: self._execution.progress,
                    None,
                ),
                host=RunHost(requests, self._sink, outlet, session_id, run_id, self._why_stopped),
                is_streaming=by.is_streaming,
            ),
            made.session,
            made.conversation_id if has_session else None,
            runs.models,
            self._sink,
            {},
        )

    def _why_stopped(self) -> StopKind | None:
        return self._runs.why_stopped() or ("cancelled" if self._is_stopping else None)

    async def run(self) -> str:
        """Do the run and end it. Whoever is cancelled in here ends it, too.

        Raises:
            ToolError: it could not begin, or did not complete.
            OwnershipLost: the session is another process's by now.
        """
        try:
            await asyncio.shield(self._begin())
            self._work = asyncio.create_task(self._do(), name=f"run {self.run_id}")
            await asyncio.wait({self._work})
            end = await self._how_it_ended(self._work)
            await asyncio.shield(self._end(end))
        except asyncio.CancelledError:
            await asyncio.shield(self.stop())
            raise
        if self._runs.session.lost:
            raise OwnershipLost(self._runs.session.session_id)
        if end.error is not None:
            raise ToolError(f"Agent {self._agent!r} failed: {end.error.message}")
        if end.status != "completed":
            raise ToolError(f"Agent {self._agent!r} was stopped before it had answered.")
        if end.stop_reason == "inputRequired":
            raise ToolError(f"Agent {self._agent!r} asked for something that nobody can give it here.")
        return self._execution.progress.text

    def explanation(self) -> Explanation:
        """What its model calls have seen so far."""
        return explanation_of(self._execution.progress.meter.calls, self._agent)

    def cancel(self) -> None:
        """Stop this run alone: its caller is told, and goes on."""
        self._is_stopping = True
        if self._work is not None:
            self._work.cancel()

    async def stop(self) -> None:
        """Stop the run and end it, if it has not ended yet."""
        self._is_stopping = True
        work = self._work
        if work is not None and not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=ABANDON_AFTER_S)
            work.add_done_callback(_retrieve)
        kind = self._runs.why_stopped() or "cancelled"
        await self._end(stopped(kind), RuntimeError(f"the run was stopped: {kind}"))

    async def _do(self) -> None:
        await self._lifetimes.enter(self._made.plan)
        await self._execution.run()

    async def _begin(self) -> None:
        """Store the run and its task: from here on it has exactly one end. No model call without that."""
        session = self._runs.session
        data: JsonObject = {"agent": self._agent}
        model = self._made.plan.options.model or self._made.plan.model
        if model is not None:
            data["model"] = model
        drafts = [Draft("run.started", data), completed_draft(self._input)]
        async with self._changing:
            if self.is_over:
                raise ToolError(TOO_LATE.format(agent=self._agent))
            reached("run.begin.before")
            try:
                await self._append(drafts, [self._record().put()], keep=False)
            except StoreError as error:
                self.is_over = True
                session.lost = session.lost or is_lost(error) or isinstance(error, Unknown)
                raise ToolError(NOT_STORED.format(agent=self._agent)) from error
            reached("run.begin.after")
            self._begun = True

    async def _how_it_ended(self, work: asyncio.Task[None]) -> End:
        progress = self._execution.progress
        failure = None if work.cancelled() else work.exception()
        if progress.answered or (failure is None and not work.cancelled()):
            return End("completed", progress.stop_reason)
        if failure is None:
            await self._tell_providers(RuntimeError("the run was stopped: cancelled"), STOPPED_HOOKS_S)
            return stopped("cancelled")
        error = failure if isinstance(failure, SidecarError) else SidecarError("internal error")
        if error is not failure:
            log_failure(f"run {self.run_id}", failure, error.error_id)
        if isinstance(error, OwnershipLost):
            self._runs.session.lost = True
            return stopped("interrupted")
        error.fields.setdefault("session_id", self._runs.session.session_id)
        error.fields.setdefault("run_id", self.run_id)
        await self._tell_providers(error, FAILURE_HOOKS_S)
        return End("failed", "error", error)

    async def _tell_providers(self, error: Exception, limit_s: float) -> None:
        hooks = asyncio.create_task(self._execution.failed(error))
        hooks.add_done_callback(_retrieve)
        await asyncio.wait({hooks}, timeout=limit_s)
        hooks.cancel()
        await asyncio.wait({hooks}, timeout=limit_s / 4)  # what it has asked the host is told to be over

    async def _end(self, end: End, why: Exception | None = None) -> None:
        """Store and tell the end, once. What this run has delegated ends first."""
        async with self._changing:
            if self.is_over:
                return
            self.is_over = True
            if not self._begun:
                return
            await self._runs.end_of(self.run_id)
            if why is not None:
                await self._tell_providers(why, STOPPED_HOOKS_S)
            reached("run.end.before")
            await self._store_end(end)
            reached("run.end.after")
            await self._lifetimes.leave()

    async def _store_end(self, end: End) -> None:
        session, progress = self._runs.session, self._execution.progress
        closing = close_calls(progress.transcript, "cancelled", progress.batch)
        if closing is not None:
            progress.add(closing.message)
        duration_ms = round((time.monotonic() - self._clock) * 1000)
        data = completed_data(end, progress, duration_ms)
        record = ended_record(
            self._record(),
            end,
            progress,
            agent=self._agent,
            wants_value=False,
            duration_ms=duration_ms,
            warnings=self._sink.warnings,
        )
        by = "disconnect" if end.status == "interrupted" else "cancel"
        questions = session.drop_questions(self.run_id, by)
        drafts = [
            *self._sink.take(),
            *questions.drafts,
            *(closing.drafts if closing else ()),
            Draft("run.completed", data, requests=questions.closing),
        ]
        self._sink.close()
        self._made.forget()
        try:
            if session.lost:
                raise OwnershipLost(session.session_id)
            await self._append(drafts, lambda last_seq: [record.model_copy(update={"last_seq": last_seq}).put()])
        except (StoreError, OwnershipLost) as error:
            session.lost = session.lost or (isinstance(error, StoreError) and is_lost(error))
            session.log.mute_backlog(self.run_id)
            session.log.ephemeral("run.completed", data, self.run_id, self.caller)

    async def _append(
        self, drafts: Sequence[Draft], puts: Sequence[Put] | Callable[[int], Sequence[Put]], *, keep: bool = True
    ) -> None:
        await self._runs.session.log.append(drafts, puts, run_id=self.run_id, caller=self.caller, keep=keep)

    def _record(self) -> RunRecord:
        return RunRecord(
            run_id=self.run_id,
            payload_hash="",
            started_at=self._started_at,
            input_ids=(str(self._input.message_id),),
            parent_run_id=self.caller.run_id,
            parent_call_id=self.caller.call_id,
        )


def _input(task: str, run_id: str, created_at: str) -> Message:
    """The task, as what a user says."""
    message = text_message("user", task, source=Source(type="external"))
    return message.model_copy(update={"message_id": new_id("msg"), "run_id": run_id, "created_at": created_at})


def _retrieve(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()
