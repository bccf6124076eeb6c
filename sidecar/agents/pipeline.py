"""Calls the providers around a run: before in order, after in reverse, each within its time limit and its policy."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_core import from_json, to_json

from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.context import Instruction, SessionContext
from providers.api.ports import AgentView
from providers.api.session import Session, State
from sidecar.agents.metering import estimate_tokens
from sidecar.agents.plan import AgentPlan, BoundProvider
from sidecar.agents.sink import Draft, RunSink
from sidecar.errors import ProviderFailed, SidecarError, new_error_id
from sidecar.telemetry import log_failure

FAILURE_HOOKS_TIMEOUT_S: Final = 2.0
"""For all failure hooks of a run together: the answer waits for them."""


@dataclass(slots=True)
class HookStats:
    """How a provider did lately; shown by `getState`."""

    last_before_ms: float | None = None
    last_after_ms: float | None = None
    last_error: str | None = None


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
        self._agent = agent
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
        """Tell every provider that had begun. What goes wrong here is logged only."""
        for bound in reversed(self._entered):
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
        first = [bound.source_id for bound in self._plan.providers if bound.position == "before_input"]
        last = [bound.source_id for bound in self._plan.providers if bound.position == "after_input"]
        return [
            *(message for source in first for message in context.context_messages.get(source, ())),
            *context.input_messages,
            *(message for source in last for message in context.context_messages.get(source, ())),
        ]

    async def _hook(
        self, bound: BoundProvider, phase: str, hook: Callable[..., Awaitable[None]]
    ) -> SidecarError | None:
        """Call one hook; undo what it wrote if it fails. Exactly one event tells how it ended."""
        self._sink.ephemeral("provider.started", {"sourceId": bound.source_id, "type": bound.type, "phase": phase})
        started = time.perf_counter()
        undo = _Undo(self._session, self._context, bound)
        failure: SidecarError | None = None
        try:
            await _within(
                bound.timeout_ms,
                hook(
                    agent=self._agent,
                    session=self._session,
                    context=self._context,
                    state=self._session.state_of(bound.state_key),
                ),
            )
        except Exception as error:
            failure = _failure(bound, phase, error)
            undo.restore()
        spent = (time.perf_counter() - started) * 1000
        self._tell(bound, phase, spent, undo.added(), failure)
        return failure

    def _tell(
        self, bound: BoundProvider, phase: str, spent_ms: float, added: JsonObject, failure: SidecarError | None
    ) -> None:
        stats = self._stats.setdefault(bound.source_id, HookStats())
        if phase == "beforeRun":
            stats.last_before_ms = spent_ms
        else:
            stats.last_after_ms = spent_ms
        data: JsonObject = {
            "sourceId": bound.source_id,
            "type": bound.type,
            "phase": phase,
            "durationMs": round(spent_ms, 3),
        }
        if failure is None:
            stats.last_error = None
            if phase == "beforeRun":
                data["added"] = added
            self._sink.stage(Draft("provider.completed", data))
            return
        stats.last_error = failure.message
        data["error"] = {"kind": failure.kind, "message": failure.message}
        self._sink.stage(Draft("provider.failed", data))
        if phase == "afterRun" or bound.on_error == "warn":
            self._sink.warn(failure.kind, failure.message, source_id=bound.source_id)


class _Undo:
    """What a hook may write, as it was before."""

    def __init__(self, session: Session, context: SessionContext, bound: BoundProvider) -> None:
        self._session = session
        self._context = context
        self._bound = bound
        self._state = to_json(session.state_of(bound.state_key))
        self._instructions = len(context.instructions)
        self._messages: Sequence[Message] | None = context.context_messages.get(bound.source_id)

    def restore(self) -> None:
        """Put everything back."""
        state: State = self._session.state_of(self._bound.state_key)
        state.clear()
        state.update(from_json(self._state))
        del self._context.instructions[self._instructions :]
        if self._messages is None:
            self._context.context_messages.pop(self._bound.source_id, None)
        else:
            self._context.context_messages[self._bound.source_id] = self._messages

    def added(self) -> JsonObject:
        """How much has been added since."""
        instructions: list[Instruction] = self._context.instructions[self._instructions :]
        messages = self._context.context_messages.get(self._bound.source_id, ())[len(self._messages or ()) :]
        texts = (*(instruction.text for instruction in instructions), *(message.text for message in messages))
        return {
            "instructions": len(instructions),
            "messages": len(messages),
            "tools": 0,
            "middleware": 0,
            "tokens": estimate_tokens(*texts),
        }


async def _within(timeout_ms: int, hook: Awaitable[None]) -> None:
    async with asyncio.timeout(timeout_ms / 1000):
        await hook


def _failure(bound: BoundProvider, phase: str, error: Exception) -> SidecarError:
    """What is told of a failure: our own errors in full, others by name only, because their text may hold anything."""
    if isinstance(error, SidecarError):
        why = error.message
    elif isinstance(error, TimeoutError):
        why = f"it took longer than {bound.timeout_ms} ms"
    else:
        why = type(error).__name__
    failure = ProviderFailed(bound.source_id, phase, why)
    log_failure(f"provider {bound.source_id!r} in {phase}", error, failure.error_id)
    return failure
