"""Runs the calls of one model answer, side by side: intent stored, then the effect, then the result. Calls no model.

    tool.started (stored) → function middleware → the tool → tool.completed (stored) → one message with all results

A call ends in exactly one result, whatever its tool or its middleware does; results stand in the order of the calls.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Source
from providers.api.context import OfferedTool
from providers.api.invocation import ToolChanges
from providers.api.run_context import RunContext
from providers.api.tool import FunctionTool
from providers.api.tool_result import ToolResult, error_result
from sidecar.config.limits import Limits
from sidecar.crash_points import reached

from .consent import ConsentGate, Due, Gate, ParkedAnswer
from .output import Progress
from .parts import BoundMiddleware
from .sink import CallNote, Draft, RequestNote, RunSink
from .tool_call import ARGUMENTS_TEXT, NOT_STORED_TEXT, Call, ToolCall, ToolCaller, completed, started

UNKNOWN_TEXT: Final = 'Error: Requested function "{name}" not found.'
TRUNCATED_TEXT: Final = "Error: The call was cut off by the output limit and not run. Send it again, whole and shorter."
SURPLUS_TEXT: Final = "Error: The call was not run: one answer may hold {most} calls. Send it again in the next one."
ABANDON_AFTER_S: Final = 0.5
"""A call that ignores its cancellation is given up after this."""
ADDED_BY_THE_RUN: Final = Source(type="run")
"""Who offers a tool that another tool has added under way."""


@dataclass(slots=True)
class BatchEnd:
    """How the calls of one answer ended."""

    results: tuple[FunctionResultBlock, ...]
    """In the order of the calls; those of calls that are left to the host are missing."""
    drafts: list[Draft]
    """What is still to be told, with the message that holds the results."""
    notes: tuple[CallNote, ...]
    """What closes the records of the calls that were begun, once that message is stored."""
    left_to_host: tuple[FunctionCallBlock, ...] = ()
    """Calls of tools that are declared only."""
    terminated: bool = False
    """Middleware ended the loop: no further model call."""
    is_parked: bool = False
    """Nothing ran: the run ends with questions about these calls."""

    @property
    def all_failed(self) -> bool:
        """Whether not one call succeeded."""
        return bool(self.results) and all(result.is_error for result in self.results)


class ToolBatches:
    """Runs the calls of one run's answers, one answer after the other."""

    def __init__(
        self,
        run: RunContext,
        progress: Progress,
        sink: RunSink,
        middleware: Sequence[BoundMiddleware],
        limits: Limits,
        gate: ConsentGate,
        offered: Sequence[OfferedTool],
        *,
        detailed_errors: bool,
    ) -> None:
        """Nothing is run yet.

        Args:
            run: What tools and middleware may know of the run.
            progress: Where begun calls are noted, for whoever must end the run early.
            sink: Takes the events.
            middleware: Function middleware, outermost first.
            limits: Of calls, times and sizes.
            gate: Decides which calls may run.
            offered: The run's tools, with who offers them.
            detailed_errors: Whether the model is told what went wrong in a tool.
        """
        self._caller = ToolCaller(run, progress, sink, middleware, limits, detailed_errors=detailed_errors)
        self._progress = progress
        self._sink = sink
        self._limits = limits
        self._gate = gate
        self._sources = {id(one.tool): one.source for one in offered}

    async def run(
        self,
        calls: Sequence[FunctionCallBlock],
        changes: ToolChanges,
        *,
        is_cut: bool = False,
        parked: ParkedAnswer | None = None,
    ) -> BatchEnd:
        """Run the calls of one answer.

        Args:
            calls: What the model asked for.
            changes: The tools of the run, as they are now.
            is_cut: The answer ended at the output limit: none of its calls can be trusted to be whole.
            parked: What was decided of the calls, where an earlier run ended with them.

        Raises:
            MiddlewareFailed: a guard failed the run.
            OwnershipLost: the session is another process's by now.
        """
        batch = [Call(block) for block in calls]
        tools = {tool.name: tool for tool in changes.live}
        due: list[ToolCall] = []
        for index, call in enumerate(batch):
            tool = tools.get(call.block.name)
            call.result = self._refusal(call.block, index, tool, is_cut=is_cut)
            if call.result is None and tool is not None and not tool.is_declaration_only:
                due.append(ToolCall(call, tool, self._sources.get(id(tool), ADDED_BY_THE_RUN)))
        gate = await self._passed(due, parked)
        if gate.is_parked:
            return BatchEnd((), [], (), is_parked=True)
        ended = [call for call in batch if call.result is not None]
        due, denied = [one for one in due if one.call.result is None], [call for call in ended if call.is_denied]
        stored = bool(due) and await self._store_intent(due, denied, gate.closing)
        if stored:
            ended = [call for call in ended if not call.told]
            ended.extend(await self._run_all(due, changes))
        for one in () if stored else due:
            one.call.result = error_result(NOT_STORED_TEXT)
            ended.append(one.call)
        return BatchEnd(
            results=tuple(call.result_block for call in batch if call.result is not None),
            drafts=_with_notes(_told(ended), () if stored else gate.closing),
            notes=tuple(CallNote(block.call_id, block.name, open=False) for block in self._noted(due, denied)),
            left_to_host=tuple(call.block for call in batch if call.result is None),
            terminated=any(one.terminated for one in due),
        )

    async def _passed(self, due: Sequence[ToolCall], parked: ParkedAnswer | None) -> Gate:
        """Decide what may run; a call that may not has its result by that."""
        asked = [Due(one.call.block, one.tool, one.source) for one in due]
        by_id = {one.call.block.call_id: one for one in due}

        def waiting(call: FunctionCallBlock) -> Draft:
            return started(by_id[call.call_id], call.arguments, "pending")

        gate = await self._gate.pass_through(asked, waiting, parked)
        for one in due:
            text = gate.denied.get(one.call.block.call_id)
            if text is not None:
                one.call.result, one.call.is_denied = error_result(text), True
            elif (fault := gate.unfit.get(one.call.block.call_id)) is not None:
                one.call.result = error_result(fault)
            one.approved = one.call.block.call_id in gate.decided
            one.seal = gate.decided.get(one.call.block.call_id)
        if gate.decided and not gate.is_parked:
            self._progress.acted = True
        return gate

    def _noted(self, due: Sequence[ToolCall], denied: Sequence[Call]) -> list[FunctionCallBlock]:
        """The calls that have a record by now: those that were begun, and what was denied beside them."""
        return [*(one.call.block for one in due), *(call.block for call in denied if due)]

    def _refusal(
        self, block: FunctionCallBlock, index: int, tool: FunctionTool | None, *, is_cut: bool
    ) -> ToolResult | None:
        """The result of a call that cannot be run."""
        most = self._limits.max_tool_calls
        if index >= most:
            return error_result(SURPLUS_TEXT.format(most=most))
        if is_cut:
            return error_result(TRUNCATED_TEXT)
        if tool is None or tool.hosted is not None:
            return error_result(UNKNOWN_TEXT.format(name=block.name))
        return error_result(ARGUMENTS_TEXT) if block.raw_arguments is not None else None

    async def _store_intent(
        self, due: Sequence[ToolCall], denied: Sequence[Call], closing: Sequence[RequestNote]
    ) -> bool:
        """Store that these calls begin, what was denied beside them, and that nothing waits for a decision any more."""
        reached("tool.intent.before")
        begun = [started(one, one.call.block.arguments) for one in due]
        self._progress.parked_taken = True  # a cancel in the commit does not undo it
        stored = await self._sink.commit(*_with_notes([*_told(denied), *begun], closing))
        reached("tool.intent.after")
        if not stored:
            for call in denied:
                call.told = False
        if stored:
            self._progress.acted = True
            self._progress.batch.update((call.block.call_id, call.result_block) for call in denied)
            self._progress.batch.update((one.call.block.call_id, None) for one in due)
        return stored

    async def _run_all(self, due: Sequence[ToolCall], changes: ToolChanges) -> list[Call]:
        """Run the calls side by side, and store each result as it comes.

        Returns:
            The calls that ended last: their results are stored with the message.
        """
        tasks = {asyncio.create_task(self._caller.call(one, changes)): one.call for one in due}
        pending = set(tasks)
        finished: list[Call] = []
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                finished = [tasks[task] for task in done]
                if pending:
                    await self._sink.commit(*_told(finished))
        except BaseException:
            await self._give_up(tasks)
            raise
        return finished

    async def _give_up(self, tasks: dict[asyncio.Task[None], Call]) -> None:
        """Stop the calls that are under way. The results of those that have ended all the same are told, and kept."""
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait(tasks, timeout=ABANDON_AFTER_S)
        finally:
            for task in tasks:
                task.add_done_callback(_retrieve)
            for draft in _told([call for call in tasks.values() if call.result is not None and not call.told]):
                self._sink.stage(draft)


def _told(calls: Sequence[Call]) -> list[Draft]:
    for call in calls:
        call.told = True
    return [completed(call) for call in calls]


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()


def _with_notes(drafts: list[Draft], closing: Sequence[RequestNote]) -> list[Draft]:
    """The events, the first of which closes some requests."""
    if closing and drafts:
        drafts[0] = replace(drafts[0], requests=(*drafts[0].requests, *closing))
    return drafts
