"""One tool call, from its middleware to what the model is told of it. It decides on no call, and stores no intent."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Source, TextBlock
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

from .onion import Layer, TookTooLong, contained, through
from .output import Progress
from .parts import BoundMiddleware
from .sink import CallNote, Draft, RunSink
from .standing_rules import same_json
from .tool_progress import ToolProgress

FAILED_TEXT: Final = "Error: Function failed."
ARGUMENTS_TEXT: Final = "Error: Argument parsing failed."
LEFT_OUT_TEXT: Final = "Error: The call was not run: it was held back."
NOT_STORED_TEXT: Final = "Error: The call was not run: it could not be recorded. Try again later."
SMALL: Final = 64 * 1024
"""Characters of a result that is turned into text at once; anything else that may be long is, beside the loop."""


@dataclass(slots=True)
class Call:
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
        """Its result as messages have it."""
        result = self.result or error_result(FAILED_TEXT)
        return FunctionResultBlock(
            call_id=self.block.call_id,
            content=result.content,
            structured_content=result.structured,
            is_error=result.is_error or None,
        )


@dataclass(slots=True)
class ToolCall:
    """A call that can be run."""

    call: Call
    tool: FunctionTool
    source: Source
    approved: bool = False
    """A person has allowed it, with the arguments that it was shown with."""
    seal: str | None = None
    """What the tool's preview has sealed for that."""
    ran: bool = False
    """Its tool was started."""
    terminated: bool = False
    """Middleware ended the loop with it."""


class ToolCaller:
    """Makes the calls of one run."""

    def __init__(
        self,
        run: RunContext,
        progress: Progress,
        sink: RunSink,
        middleware: Sequence[BoundMiddleware],
        limits: Limits,
        *,
        detailed_errors: bool,
    ) -> None:
        """Nothing is called yet.

        Args:
            run: What tools and middleware may know of the run.
            progress: Where results are noted, for whoever must end the run early.
            sink: Takes the events.
            middleware: Function middleware, outermost first.
            limits: Of times and sizes.
            detailed_errors: Whether the model is told what went wrong in a tool.
        """
        self._run = run
        self._progress = progress
        self._sink = sink
        self._layers: list[Layer] = [processor_of(bound.middleware) for bound in middleware]
        self._limits = limits
        self._detailed = detailed_errors

    async def call(self, one: ToolCall, changes: ToolChanges) -> None:
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
            approved=one.approved,
            seal=one.seal,
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

    async def _within(self, one: ToolCall, context: FunctionInvocationContext) -> None:
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

    async def _invoke(self, one: ToolCall, context: FunctionInvocationContext) -> None:
        """The tool itself, with the arguments that middleware left."""
        tool = one.tool
        if one.approved and not _keeps_approved(context.arguments, one.call.block.arguments):
            raise ToolError("The call was not run: what was approved was changed.")
        slow = tool.plan.may_take_long(context.arguments)
        values = await asyncio.to_thread(tool.bind, context.arguments) if slow else tool.bind(context.arguments)
        tool.count()
        if context.arguments != one.call.block.arguments:
            changed = cast("JsonObject", plain_json(context.arguments, "arguments"))
            if not await self._sink.commit(started(one, changed)):
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

        return show() if _is_small(value) and tool.result_parser is None else await asyncio.to_thread(show)

    def _failure(self, one: ToolCall, error: Exception) -> ToolResult:
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


def started(one: ToolCall, arguments: JsonObject, status: Literal["pending", "running"] = "running") -> Draft:
    """The event of a call's beginning, or of its waiting for consent."""
    block = one.call.block
    data: JsonObject = {"callId": block.call_id, "name": block.name}
    if one.tool.title is not None:
        data["title"] = one.tool.title
    if one.tool.kind is not None:
        data["kind"] = one.tool.kind
    data |= {"arguments": arguments, "status": status}
    calls = (CallNote(block.call_id, block.name),) if status == "running" else ()
    return Draft("tool.started", data, calls=calls)


def completed(call: Call) -> Draft:
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


def _keeps_approved(arguments: JsonObject, approved: JsonObject) -> bool:
    """Whether all that was approved is as it was; middleware may add to it."""
    return all(name in arguments and same_json(arguments[name], value) for name, value in approved.items())


def _is_small(value: Any) -> bool:
    """Whether it is turned into text in no time."""
    match value:
        case None:
            return True
        case str() | bytes():
            return len(value) <= SMALL
        case ToolResult(content=(TextBlock(text=text),), structured=None):
            return len(text) <= SMALL
        case _:
            return False


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
