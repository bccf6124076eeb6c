"""Calls the providers around a run: before in order, after in reverse, each within its time limit and its policy."""

import asyncio
import json
import time
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.context import Instruction, SessionContext
from providers.api.json_value import plain_json
from providers.api.ports import AgentView
from providers.api.session import Session, State
from sidecar.errors import ProviderFailed, SidecarError, new_error_id
from sidecar.telemetry import log_failure

from .metering import GrowingText, tokens_of
from .plan import AgentPlan, BoundProvider
from .sink import Draft, RunSink

Phase = Literal["beforeRun", "afterRun"]


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
    ) -> None:
        self._plan = plan
        self._agent = weakref.proxy(agent)  # it holds us: a cycle would keep a run's texts until some late collection
        self._session = session
        self._context = context
        self._sink = sink
        self._stats = stats
        self._entered: list[BoundProvider] = []

    async def before(self) -> None:
        """Let each provider add its context.

        Raises:
            ProviderFailed: a provider failed whose policy is to fail the run.
        """
        for bound in self._plan.providers:
            self._entered.append(bound)
            failure = await self._hook(bound, "beforeRun", bound.provider.before_run)
            if failure is not None and bound.on_error == "fail":
                raise failure

    async def after(self) -> None:
        """Let each provider learn from the answer. A failure never costs the reply."""
        providers = self._plan.providers
        for bound in providers if self._plan.after_run_order == "forward" else reversed(providers):
            await self._hook(bound, "afterRun", bound.provider.after_run)

    async def failed(self, error: Exception, partial_text: str) -> None:
        """Tell every provider that had begun, all at once: one that hangs keeps no other from hearing of it."""
        await asyncio.gather(*(self._tell_failure(bound, error, partial_text) for bound in reversed(self._entered)))

    async def _tell_failure(self, bound: BoundProvider, error: Exception, partial_text: str) -> None:
        try:
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

    def messages(self) -> list[Message]:
        """What the model sees: context in list order around the input."""
        context = self._context
        last = [bound.source_id for bound in self._plan.providers if bound.position == "after_input"]
        listed = [bound.source_id for bound in self._plan.providers]
        first = [source for source in dict.fromkeys((*listed, *context.context_messages)) if source not in last]
        return [
            *chain.from_iterable(context.context_messages.get(source, ()) for source in first),
            *context.run_messages,
            *context.input_messages,
            *chain.from_iterable(context.context_messages.get(source, ()) for source in last),
        ]

    async def _hook(
        self, bound: BoundProvider, phase: Phase, hook: Callable[..., Awaitable[None]]
    ) -> SidecarError | None:
        """Call one hook; undo what it wrote if it fails or is stopped. Exactly one event tells how it ended."""
        self._sink.ephemeral("provider.started", {"sourceId": bound.source_id, "type": bound.type, "phase": phase})
        started = time.perf_counter()
        undo = _Undo(self._session, self._context, bound)
        failure: SidecarError | None = None
        try:
            state = self._session.state_of(bound.state_key)
            undo.remember_state()
            await _within(
                bound.timeout_ms, hook(agent=self._agent, session=self._session, context=self._context, state=state)
            )
            undo.check_state()
        except Exception as error:
            failure = _failure(bound, phase, error)
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

    def _stage(
        self, bound: BoundProvider, phase: Phase, spent_ms: float, failure: SidecarError | None, undo: "_Undo"
    ) -> None:
        """Note how a hook ended, and stage its one durable event."""
        stats = self._stats.setdefault(bound.source_id, HookStats())
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
        if failure is not None:
            data["error"] = {"kind": failure.kind, "message": failure.message}
            self._sink.stage(Draft("provider.failed", data))
            return
        if phase == "beforeRun":
            data["added"] = undo.added(stats.added)
        self._sink.stage(Draft("provider.completed", data))


class _Undo:
    """What a hook may write, as it was before: its own state in depth, the rest of the bag by its keys."""

    def __init__(self, session: Session, context: SessionContext, bound: BoundProvider) -> None:
        self._session = session
        self._context = context
        self._bound = bound
        self._bag = dict(session.state)
        self._own: str | None = None
        self._instructions = len(context.instructions)
        self._messages = dict(context.context_messages)

    def remember_state(self) -> None:
        """Keep the provider's own state. Raises where an earlier hook has left something that is no JSON in it."""
        self._own = self._dumped()

    def check_state(self) -> None:
        """Refuse state that could not be stored: it would take the whole run's writes with it."""
        self._dumped()

    def restore(self) -> None:
        """Put everything back."""
        state = self._session.state
        state.clear()
        state.update(self._bag)
        if self._own is not None:
            state[self._bound.state_key] = json.loads(self._own)
        del self._context.instructions[self._instructions :]
        self._context.context_messages.clear()
        self._context.context_messages.update(self._messages)

    def added(self, text: GrowingText) -> JsonObject:
        """How much has been added since; `text` counts it."""
        instructions: list[Instruction] = self._context.instructions[self._instructions :]
        messages: tuple[Message, ...] = ()
        for source, known in self._context.context_messages.items():
            messages += tuple(known[len(self._messages.get(source, ())) :])
        characters = sum(len(instruction.text) for instruction in instructions) + text.length(messages)
        return {
            "instructions": len(instructions),
            "messages": len(messages),
            "tools": 0,
            "middleware": 0,
            "tokens": tokens_of(characters),
        }

    def _dumped(self) -> str:
        state = self._session.state_of(self._bound.state_key)
        try:
            return json.dumps(state, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise _UnstorableState(self._bound.state_key, state) from None


class _UnstorableState(Exception):
    """A provider's state holds what is no JSON; the message names where it stands."""

    def __init__(self, key: str, state: State) -> None:
        try:
            plain_json(state, key)
            super().__init__(f"state {key!r} is no JSON")
        except ValueError as error:
            super().__init__(str(error))


class _TookTooLong(Exception):
    """A hook's own time limit has passed; a `TimeoutError` may also be of the hook's own making."""


async def _within(timeout_ms: int, hook: Awaitable[None]) -> None:
    limit = asyncio.timeout(timeout_ms / 1000)
    try:
        async with limit:
            await hook
    except TimeoutError as error:
        raise (_TookTooLong() if limit.expired() else error) from None


def _failure(bound: BoundProvider, phase: Phase, error: Exception) -> SidecarError:
    """What is told of a failure: our own errors in full, others by name only, because their text may hold anything."""
    if isinstance(error, SidecarError):
        why = error.message
    elif isinstance(error, _UnstorableState):
        why = str(error)
    elif isinstance(error, _TookTooLong):
        why = f"it took longer than {bound.timeout_ms} ms"
    else:
        why = type(error).__name__
    failure = ProviderFailed(bound.source_id, phase, why)
    log_failure(f"provider {bound.source_id!r} in {phase}", error, failure.error_id)
    return failure
