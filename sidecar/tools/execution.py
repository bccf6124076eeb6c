"""Calls a tool's function: async ones here, sync ones in threads. Whatever the function does, the loop goes on.

Python cannot end a thread. A sync function whose time is over, or whose run was cancelled, is abandoned: its thread
goes on by itself until it returns, and nobody hears of it. So is an async function that ignores its cancellation. One
that never awaits cannot be stopped.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import FunctionTool, ToolError

MAX_THREADS: Final = 256
"""Sync calls at one time, the abandoned ones included."""

ABANDON_AFTER_S: Final = 0.5
"""An async function that ignores its cancellation is given up after this."""

_free_threads: Final = threading.BoundedSemaphore(MAX_THREADS)


class ToolTimeout(ToolError):
    """The function did not end in its time."""


class ToolCrashed(Exception):
    """The function raised what would end the process or the task: `SystemExit`, for example, or a `CancelledError`."""


async def call_function(
    tool: FunctionTool,
    values: Mapping[str, Any],
    context: FunctionInvocationContext,
    *,
    timeout_s: float | None,
    kwargs: Mapping[str, Any],
) -> Any:
    """Call a tool's function once. Counting calls and failures is the caller's business.

    Args:
        tool: what is called.
        values: what `tool.bind` made of the arguments.
        context: given to the function if it asks for it.
        timeout_s: how long it may take, in seconds; `None`: any time.
        kwargs: the run's, for a function that takes `**kwargs`.

    Raises:
        ToolError: the function raised it, or there is no free thread.
        ToolTimeout: the time was over.
        ToolCrashed: the function raised what is no ordinary exception.
        asyncio.CancelledError: the task was cancelled, even if the function made nothing of that.
        Exception: whatever else the function raised.
    """
    cancels = _cancels()
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            result = await _result(tool, _given(tool, values, context, kwargs))
    except BaseException as error:
        if _cancels() > cancels:
            raise asyncio.CancelledError from error
        if limit.expired():
            raise ToolTimeout(f"Tool {tool.name!r} did not end within {timeout_s:g} s.") from error
        if isinstance(error, Exception):
            raise
        raise ToolCrashed(f"tool {tool.name!r} raised {type(error).__name__}") from error
    if _cancels() > cancels:
        raise asyncio.CancelledError
    return result


def _cancels() -> int:
    """How many cancellations of the current task are not yet dealt with."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _given(
    tool: FunctionTool, values: Mapping[str, Any], context: FunctionInvocationContext, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    given = {**kwargs, **values} if tool.takes_kwargs else dict(values)
    if tool.context_parameter is not None:
        given[tool.context_parameter] = context
    return given


async def _result(tool: FunctionTool, given: dict[str, Any]) -> Any:
    if tool.function is None:
        raise ToolError(f"Tool {tool.name!r} is only declared; nothing here can call it.")
    if tool.is_async:
        return await _in_task(tool.function(**given))
    value, error = await _in_thread(tool.name, partial(tool.function, **given))
    if error is not None:
        raise error
    return await _in_task(value) if inspect.isawaitable(value) else value


async def _in_task(call: Awaitable[Any]) -> Any:
    """Await a call in a task of its own, which can be left behind."""
    task = asyncio.create_task(_outcome(call))
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=ABANDON_AFTER_S)
        raise
    value, error = task.result()
    if error is not None:
        raise error
    return value


async def _outcome(call: Awaitable[Any]) -> "_Outcome":
    """What came of a call; nothing that it raises gets out of its task, where it would end the loop."""
    try:
        return await call, None
    except BaseException as error:
        return None, error


_Outcome = tuple[Any, BaseException | None]
"""What a function returned, or raised: a future cannot be given every exception."""


def _in_thread(name: str, call: Callable[[], Any]) -> asyncio.Future[_Outcome]:
    """Start `call` in a thread that the process does not wait for."""
    slots = _free_threads
    if not slots.acquire(blocking=False):
        raise ToolError(f"{MAX_THREADS} tools are at work, and no other can be started; try again later.")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome: _Outcome = context.run(call), None
        except BaseException as error:  # the loop's side tells them apart
            outcome = None, error
        finally:
            slots.release()
        try:
            loop.call_soon_threadsafe(_settle, future, outcome)
        except RuntimeError:  # the loop is closed
            _discard(outcome)

    try:
        threading.Thread(target=work, name=f"tool-{name}", daemon=True).start()
    except RuntimeError as error:
        slots.release()
        raise ToolError("The system has no thread left for another tool; try again later.") from error
    return future


def _settle(future: asyncio.Future[_Outcome], outcome: _Outcome) -> None:
    if future.done():
        _discard(outcome)
    else:
        future.set_result(outcome)


def _discard(outcome: _Outcome) -> None:
    """Drop what nobody waits for, without a warning that it was never awaited."""
    if inspect.iscoroutine(outcome[0]):
        outcome[0].close()
