"""Calls the providers around a run: before in order, after in reverse, each within its time limit and its policy."""

import asyncio
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Final

from protocol.base import JsonObject
from protocol.messages import Message, Source
from providers.api.clean_text import clean_text
from providers.api.context import SessionContext
from providers.api.errors import ProviderError
from providers.api.json_value import plain_json
from providers.api.modes import MAX_PLAN_ENTRIES, PlanEntry
from providers.api.ports import AgentView
from providers.api.provider import Phase
from providers.api.session import Session
from sidecar.errors import ProviderFailed, SidecarError, new_error_id
from sidecar.telemetry import log_failure

from .binding import BoundProvider
from .explain import CallsMadeBy
from .metering import GrowingText
from .onion import named
from .plan import AgentPlan
from .sink import Draft, RunSink
from .time_limit import LimitPassed, within
from .undo import Undo, UnstorableState

MOST_PROGRESS: Final = 1_000
"""Pieces of progress of one hook that are sent on."""


@dataclass(slots=True)
class HookStats:
    """How a provider did lately; shown by `getState`."""

    last_before_ms: float | None = None
    last_after_ms: float | None = None
    last_error: str | None = None
    added: GrowingText = field(default_factory=GrowingText)
    """What the provider puts before the model; a history puts all of it there, run after run."""


class Pipeline:
    """The providers of one run."""

    def __init__(
        self,
        plan: AgentPlan,
        agent: AgentView,
        session: Session,
        context: SessionContext,
        sink: RunSink,
        stats: dict[str, HookStats],
        *,
        shares_state: bool = False,
    ) -> None:
        self._plan = plan
        self._shares_state = shares_state
        self._left_out: Collection[str] = ()
        self._store_only: set[str] = set()
        self._agent = weakref.proxy(agent)  # it holds us: a cycle would keep a run's texts until some late collection
        self._session = session
        self._context = context
        self._sink = sink
        self._stats = stats
        self._entered: list[BoundProvider] = []
        self.phases: list[JsonObject] = []
        """How each hook ended, as its event tells it."""

    def leave_out(self, source_ids: Collection[str]) -> None:
        """Do not call the hooks of these providers in this run: somebody else sees to them, or nobody."""
        self._left_out = source_ids

    def store_only(self, source_id: str) -> None:
        """Let this provider learn from this run, but not add to it."""
        self._store_only.add(source_id)

    async def before(self) -> None:
        """Let each provider add its context. Independent neighbours work at the same time; the order stays the list's.

        Raises:
            ProviderFailed: a provider failed whose policy is to fail the run.
        """
        adding = (bound for bound in self._taking_part() if bound.source_id not in self._store_only)
        for independent, group in groupby(adding, key=lambda bound: bound.independent):
            members = list(group)
            if independent and len(members) > 1:
                await self._side_by_side(members)
                continue
            for bound in members:
                self._entered.append(bound)
                failure = await self._hook(bound, "beforeRun", self._context)
                if failure is not None and bound.on_error == "fail":
                    raise failure

    async def after(self) -> None:
        """Let each provider learn from the answer. A failure never costs the reply."""
        providers = list(self._taking_part())
        for bound in providers if self._plan.after_run_order == "forward" else reversed(providers):
            await self._hook(bound, "afterRun", self._context)

    def _taking_part(self) -> Iterator[BoundProvider]:
        return (bound for bound in self._plan.providers if bound.source_id not in self._left_out)

    async def _side_by_side(self, group: Sequence[BoundProvider]) -> None:
        """Each on a context of its own; what they add is put together in the order of the list."""
        self._entered.extend(group)
        contexts = [self._context.fork() for _ in group]
        hooks = [self._hook(bound, "beforeRun", context) for bound, context in zip(group, contexts, strict=True)]
        failures = await asyncio.gather(*hooks)
        for bound, context, failure in zip(group, contexts, failures, strict=True):
            failure = failure or self._absorb(bound, context)
            if failure is not None and bound.on_error == "fail":
                raise failure

    def _absorb(self, bound: BoundProvider, context: SessionContext) -> SidecarError | None:
        """Take in what a neighbour has added: all of it, or nothing where a tool of its has another's name."""
        undo = Undo(self._session, self._context, bound.state_key, own_only=True)
        try:
            self._context.absorb(context)
        except ValueError as error:
            undo.restore()
            failure = ProviderFailed(bound.source_id, "beforeRun", str(error))
            if bound.on_error == "warn":
                self._sink.warn(failure.kind, failure.message, source_id=bound.source_id)
            return failure
        return None

    async def failed(self, error: Exception, partial_text: str) -> None:
        """Tell every provider that had begun, all at once: one that hangs keeps no other from hearing of it."""
        await asyncio.gather(*(self._tell_failure(bound, error, partial_text) for bound in reversed(self._entered)))

    async def _tell_failure(self, bound: BoundProvider, error: Exception, partial_text: str) -> None:
        try:
            with CallsMadeBy(bound.source_id):
                await bound.provider.on_failure(
                    agent=self._agent,
                    session=self._session,
                    context=self._context,
                    state=self._session.state_of(bound.state_key),
                    error=error,
                    partial_text=partial_text,
                )
        except Exception as problem:  # a hook of somebody's provider must not hide the run's own error
            log_failure(f"failure hook of provider {bound.source_id!r}", problem, new_error_id())

    def messages(self, inputs: Sequence[Message]) -> list[Message]:
        """What the model sees: context in list order around the input."""
        context = self._context
        last = [bound.source_id for bound in self._plan.providers if bound.position == "after_input"]
        listed = [bound.source_id for bound in self._plan.providers]
        first = [source for source in dict.fromkeys((*listed, *context.context_messages)) if source not in last]
        return [
            *chain.from_iterable(context.context_messages.get(source, ()) for source in first),
            *context.run_messages,
            *inputs,
            *chain.from_iterable(context.context_messages.get(source, ()) for source in last),
        ]

    async def _hook(self, bound: BoundProvider, phase: Phase, context: SessionContext) -> SidecarError | None:
        """Call one hook; undo what it wrote if it fails or is stopped. Exactly one event tells how it ended."""
        if not bound.provider.takes_part(phase):
            return None
        hook = bound.provider.before_run if phase == "beforeRun" else bound.provider.after_run
        self._sink.ephemeral("provider.started", {"sourceId": bound.source_id, "type": bound.type, "phase": phase})
        context.on_progress = _Progress(self._sink, bound, phase)
        context.on_warning = self._warned
        context.on_plan = self._planned
        started = time.perf_counter()
        undo = Undo(self._session, context, bound.state_key, own_only=bound.independent or self._shares_state)
        failure: SidecarError | None = None
        try:
            state = self._session.state_of(bound.state_key)
            undo.remember_state()
            with CallsMadeBy(bound.source_id):
                await within(
                    bound.timeout_ms / 1000,
                    hook(agent=self._agent, session=self._session, context=context, state=state),
                )
            undo.check_state()
            if bound.independent and context is not self._context and undo.removed:
                raise _ReplacesBeside
        except Exception as error:
            failure = hook_failure(bound, phase, error)
            undo.restore()
        except asyncio.CancelledError:
            undo.restore()
            stopped = ProviderFailed(bound.source_id, phase, "the run was stopped")
            self._stage(bound, phase, (time.perf_counter() - started) * 1000, stopped, undo)
            raise
        self._stage(bound, phase, (time.perf_counter() - started) * 1000, failure, undo)
        if failure is not None and (phase == "afterRun" or bound.on_error == "warn"):
            self._sink.warn(failure.kind, failure.message, source_id=bound.source_id)
        return failure

    def _planned(self, source: Source, entries: Sequence[PlanEntry]) -> None:
        told = [
            {"id": entry.id, "title": clean_text(entry.title), "status": entry.status}
            | ({} if entry.description is None else {"description": clean_text(entry.description)})
            for entry in entries[:MAX_PLAN_ENTRIES]
        ]
        self._sink.stage(Draft("plan.updated", {"entries": told}, source=source))

    def _warned(self, source_id: str, message: str) -> None:
        self._sink.warn("providerWarning", f"provider {source_id!r}: {message}", source_id=source_id)

    def _stage(
        self, bound: BoundProvider, phase: Phase, spent_ms: float, failure: SidecarError | None, undo: Undo
    ) -> None:
        """Note how a hook ended, and stage its one durable event."""
        stats = self._stats.get(bound.source_id) or self._stats.setdefault(bound.source_id, HookStats())
        if phase == "beforeRun":
            stats.last_before_ms = spent_ms
        else:
            stats.last_after_ms = spent_ms
        stats.last_error = failure.message if failure is not None else None
        data: JsonObject = {
            "sourceId": bound.source_id,
            "type": bound.type,
            "phase": phase,
            "durationMs": round(spent_ms, 3),
        }
        self.phases.append(data)
        if failure is not None:
            data["error"] = {"kind": failure.kind, "message": failure.message}
            self._sink.stage(Draft("provider.failed", data))
            return
        if phase == "beforeRun":
            data["added"] = undo.added(stats.added)
        if undo.removed:
            data["removed"] = undo.removed
        self._sink.stage(Draft("provider.completed", data))


class _Progress:
    """Sends on what a hook tells of its progress, as long as that is of it, is JSON, and is not too much."""

    def __init__(self, sink: RunSink, bound: BoundProvider, phase: Phase) -> None:
        self._sink, self._bound, self._phase = sink, bound, phase
        self._left = MOST_PROGRESS

    def __call__(self, source_id: str, message: str | None, data: Any) -> None:
        if source_id != self._bound.source_id or self._left == 0:
            return
        self._left -= 1
        event: JsonObject = {"sourceId": source_id, "phase": self._phase}
        if message is not None:
            event["message"] = message
        if data is not None:
            event["data"] = plain_json(data, "data")
        self._sink.ephemeral("provider.progress", event)


class _ReplacesBeside(Exception):
    """A provider that works beside others took something away, which is theirs as much."""


def hook_failure(bound: BoundProvider, phase: Phase, error: Exception) -> SidecarError:
    """What is told of a failure: our own errors in full, others by name only, because their text may hold anything."""
    if isinstance(error, SidecarError):
        why = error.message
    elif isinstance(error, UnstorableState | ProviderError):
        why = str(error)
    elif isinstance(error, _ReplacesBeside):
        why = "it is independent, and may add but not replace or remove"
    elif isinstance(error, LimitPassed):
        why = f"it took longer than {bound.timeout_ms} ms"
    else:
        why = named(error)
    failure = ProviderFailed(bound.source_id, phase, why)
    log_failure(f"provider {bound.source_id!r} in {phase}", error, failure.error_id)
    return failure
