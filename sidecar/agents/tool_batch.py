"""Runs the calls of one model answer, side by side: intent stored, then the effect, then the result. Calls no model.

    tool.started (stored) → function middleware → the tool → tool.completed (stored) → one message with all results

A call ends in exactly one result, whatever its tool or its middleware does; results stand in the order of the calls.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Source
from providers.api.context import OfferedTool
from providers.api.invocation import UNSET, FunctionInvocationContext, ToolChanges
from providers.api.json_value import plain_json
from providers.api.middleware import MiddlewareFailure, MiddlewareTermination, processor_of
from providers.api.run_context import RunContext
from providers.api.tool import ArgumentsError, FunctionTool, ToolError
from providers.api.tool_result import ToolResult, cut, error_result, tool_result
from sidecar.config.limits import Limits
from sidecar.crash_points import reached
from sidecar.errors import MiddlewareFailed, OwnershipLost, new_error_id
from sidecar.telemetry import log_failure
from sidecar.tools.execution import call_function

from .consent import ConsentGate, Due, Gate, ParkedAnswer
from .onion import Layer, TookTooLong, contained, through
from .output import Progress
from .parts import BoundMiddleware
from .sink import CallNote, Draft, RequestNote, RunSink
from .standing_rules import same_json
from .tool_progress import ToolProgress

FAILED_TEXT: Final = "Error: Function failed."
ARGUMENTS_TEXT: Final = "Error: Argument parsing failed."
UNKNOWN_TEXT: Final = 'Error: Requested function "{name}" not found.'
TRUNCATED_TEXT: Final = "Error: The call was cut off by the output limit and not run. Send it again, whole and shorter."
SURPLUS_TEXT: Final = "Error: The call was not run: one answer may hold {most} calls. Send it again in the next one."
NOT_STORED_TEXT: Final = "Error: The call was not run: it could not be recorded. Try again later."
ABANDON_AFTER_S: Final = 0.5
"""A call that ignores its cancellation is given up after this."""
LEFT_OUT_TEXT: Final = "Error: The call was not run: it was held back."
ADDED_BY_THE_RUN: Final = Source(type="run")
"""Who offers a tool that another tool has added under way."""
SMALL: Final = 64 * 1024
"""Characters of a result that is turned into text at once; anything else that may be long is, beside the loop."""


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


@dataclass(slots=True)
class _Call:
    """One call, and its result once it has one."""

    block: FunctionCallBlock
    result: ToolResult | None = None
    began: float | None = None
    told: bool = False
    """Its end is told, or about to be."""
    is_denied: bool = False
    """A person or a rule has rejected it."""

    @property
    def result_block(self) -> FunctionResultBlock:
        result = self.result or error_result(FAILED_TEXT)
        return FunctionResultBlock(
            call_id=self.block.call_id,
            content=result.content,
            structured_content=result.structured,
            is_error=result.is_error or None,
        )


@dataclass(slots=True)
class _ToolCall:
    """A call that can be run."""

    call: _Call
    tool: FunctionTool
    source: Source
    approved: bool = False
    """A person has allowed it, with the arguments that it was shown with."""
    ran: bool = False
    """Its tool was started."""
    terminated: bool = False
    """Middleware ended the loop with it."""


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
        self._run = run
        self._progress = progress
        self._sink = sink
        self._layers: list[Layer] = [processor_of(bound.middleware) for bound in middleware]
        self._limits = limits
        self._gate = gate
        self._sources = {id(one.tool): one.source for one in offered}
        self._detailed = detailed_errors

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
        batch = [_Call(block) for block in calls]
        tools = {tool.name: tool for tool in changes.live}
        due: list[_ToolCall] = []
        for index, call in enumerate(batch):
            tool = tools.get(call.block.name)
            call.result = self._refusal(call.block, index, tool, is_cut=is_cut)
            if call.result is None and tool is not None and not tool.is_declaration_only:
                due.append(_ToolCall(call, tool, self._sources.get(id(tool), ADDED_BY_THE_RUN)))
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

    async def _passed(self, due: Sequence[_ToolCall], parked: ParkedAnswer | None) -> Gate:
        """Decide what may run; a call that may not has its result by that."""
        asked = [Due(one.call.block, one.tool, one.source) for one in due]
        pending = {one.call.block.call_id: _started(one, one.call.block.arguments, "pending") for one in due}
        gate = await self._gate.pass_through(asked, pending, parked)
        for one in due:
            text = gate.denied.get(one.call.block.call_id)
            if text is not None:
                one.call.result, one.call.is_denied = error_result(text), True
            one.approved = one.call.block.call_id in gate.decided
        if gate.decided and not gate.is_parked:
            self._progress.acted = True
        return gate

    def _noted(self, due: Sequence[_ToolCall], denied: Sequence[_Call]) -> list[FunctionCallBlock]:
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
        self, due: Sequence[_ToolCall], denied: Sequence[_Call], closing: Sequence[RequestNote]
    ) -> bool:
        """Store that these calls begin, what was denied beside them, and that nothing waits for a decision any more."""
        reached("tool.intent.before")
        begun = [_started(one, one.call.block.arguments) for one in due]
        stored = await self._sink.commit(*_with_notes([*_told(denied), *begun], closing))
        reached("tool.intent.after")
        if not stored:
            for call in denied:
                call.told = False
        if stored:
            self._progress.acted = self._progress.parked_taken = True
            self._progress.batch.update((call.block.call_id, call.result_block) for call in denied)
            self._progress.batch.update((one.call.block.call_id, None) for one in due)
        return stored

    async def _run_all(self, due: Sequence[_ToolCall], changes: ToolChanges) -> list[_Call]:
        """Run the calls side by side, and store each result as it comes.

        Returns:
            The calls that ended last: their results are stored with the message.
        """
        tasks = {asyncio.create_task(self._one(one, changes)): one.call for one in due}
        pending = set(tasks)
        finished: list[_Call] = []
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

    async def _give_up(self, tasks: dict[asyncio.Task[None], _Call]) -> None:
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

    async def _one(self, one: _ToolCall, changes: ToolChanges) -> None:
        """One call, from its middleware to its result. What goes wrong in it becomes an error result.

        Raises:
            MiddlewareFailed: a guard failed the run.
        """
        call, block = one.call, one.call.block
        call.began = time.perf_counter()
        pipe = ToolProgress(self._sink, block.call_id)
        context = FunctionInvocationContext(
            one.tool,
            _copied(block.arguments),
            call_id=block.call_id,
            session=self._run.session,
            kwargs=_copied(self._run.kwargs),
            run=self._run,
            changes=changes,
            progress=pipe.write,
        )
        try:
            await contained(self._within(one, context))
        except MiddlewareFailure as failure:
            raise MiddlewareFailed("function", str(failure), tool=one.tool.name) from failure
        except OwnershipLost:
            raise
        except Exception as error:
            call.result = self._failure(one, error)
        finally:
            pipe.close()
        self._progress.batch[block.call_id] = call.result_block

    async def _within(self, one: _ToolCall, context: FunctionInvocationContext) -> None:
        """The call inside its middleware, up to what the model is told of it."""

        async def inside() -> None:
            await self._invoke(one, context)

        try:
            await through(self._layers, context, inside, limit_s=self._limits.middleware_timeout_ms / 1000)
        except MiddlewareTermination as termination:
            one.terminated = True
            if termination.result is not None:
                context.result = termination.result
        if context.result is UNSET:
            one.call.result = error_result(LEFT_OUT_TEXT)
        else:
            one.call.result = await self._shown(context.result, one.tool)

    async def _invoke(self, one: _ToolCall, context: FunctionInvocationContext) -> None:
        """The tool itself, with the arguments that middleware left."""
        tool = one.tool
        if one.approved and not _keeps_approved(context.arguments, one.call.block.arguments):
            raise ToolError("The call was not run: what was approved was changed.")
        slow = tool.plan.is_slow
        values = await asyncio.to_thread(tool.bind, context.arguments) if slow else tool.bind(context.arguments)
        tool.count()
        if context.arguments != one.call.block.arguments:
            changed = cast("JsonObject", plain_json(context.arguments, "arguments"))
            if not await self._sink.commit(_started(one, changed)):
                raise ToolError(NOT_STORED_TEXT.removeprefix("Error: "))
        one.ran = True
        limit_s = None if tool.is_remote else self._limits.tool_timeout_ms / 1000
        try:
            context.result = await call_function(tool, values, context, timeout_s=limit_s, kwargs=context.kwargs)
        except Exception:
            tool.count_failure()
            raise
        reached("tool.effect.after")

    async def _shown(self, value: Any, tool: FunctionTool) -> ToolResult:
        """What a tool returned, as the model is told of it. What may be large is not turned into text on the loop."""

        def show() -> ToolResult:
            try:
                return cut(tool_result(value, tool.result_parser), self._limits.tool_result_bytes)
            except StopIteration as error:  # what waits for a thread would never hear of it
                raise RuntimeError("the result parser raised StopIteration") from error

        is_small = value is None or (isinstance(value, str | bytes) and len(value) <= SMALL)
        return show() if is_small and tool.result_parser is None else await asyncio.to_thread(show)

    def _failure(self, one: _ToolCall, error: Exception) -> ToolResult:
        match error:
            case ToolError():
                text = f"Error: {_text_of(error)}"
            case TookTooLong():
                ran = "its outcome is not known" if one.ran else "it was not run"
                text = f"Error: The middleware around this call took too long; {ran}."
            case _:
                text = ARGUMENTS_TEXT if isinstance(error, ArgumentsError) else FAILED_TEXT
                if not isinstance(error, ArgumentsError):
                    log_failure(f"tool {one.tool.name!r}", error, new_error_id())
                if self._detailed:
                    text += f" Exception: {_text_of(error)}"
        return cut(error_result(text), self._limits.tool_result_bytes)


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # somebody's exception that cannot be shown
        return type(error).__name__


def _copied(value: Any) -> Any:
    """Objects and arrays of one's own. What else is in them stays what it is: a host's own object may be no copy."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    return [_copied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _told(calls: Sequence[_Call]) -> list[Draft]:
    for call in calls:
        call.told = True
    return [_completed(call) for call in calls]


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()


def _keeps_approved(arguments: JsonObject, approved: JsonObject) -> bool:
    """Whether all that was approved is as it was; middleware may add to it."""
    return all(name in arguments and same_json(arguments[name], value) for name, value in approved.items())


def _with_notes(drafts: list[Draft], closing: Sequence[RequestNote]) -> list[Draft]:
    """The events, the first of which closes some requests."""
    if closing and drafts:
        drafts[0] = replace(drafts[0], requests=(*drafts[0].requests, *closing))
    return drafts


def _started(one: _ToolCall, arguments: JsonObject, status: Literal["pending", "running"] = "running") -> Draft:
    block = one.call.block
    data: JsonObject = {"callId": block.call_id, "name": block.name}
    if one.tool.title is not None:
        data["title"] = one.tool.title
    if one.tool.kind is not None:
        data["kind"] = one.tool.kind
    data |= {"arguments": arguments, "status": status}
    calls = (CallNote(block.call_id, block.name),) if status == "running" else ()
    return Draft("tool.started", data, calls=calls)


def _completed(call: _Call) -> Draft:
    """The event of a call's end. Its record stays open until the message with its result is stored."""
    block = call.result_block
    spent_ms = 0 if call.began is None else round((time.perf_counter() - call.began) * 1000)
    data: JsonObject = {
        "callId": block.call_id,
        "name": call.block.name,
        "status": "denied" if call.is_denied else "failed" if block.is_error else "completed",
        "content": [part.wire() for part in block.content],
    }
    if block.structured_content is not None:
        data["structuredContent"] = block.structured_content
    data["durationMs"] = spent_ms
    notes = () if call.began is None and not call.is_denied else (CallNote(block.call_id, call.block.name, block),)
    return Draft("tool.completed", data, calls=notes)
