"""Calls of tools' functions: whatever a function does, the loop, the other calls and the process go on."""

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from providers.api.invocation import FunctionInvocationContext, ToolChanges
from providers.api.tool import FunctionTool, ToolError, tool, tool_from_schema
from sidecar.tools import execution
from sidecar.tools.execution import ToolCrashed, ToolTimeout, call_function


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends every thread that waits for it, at the latest with the test: none is there when the next one begins."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name.startswith("tool-"):
            thread.join(10)


async def call(made: FunctionTool, *, timeout_s: float | None = 10, kwargs: Any = None, **arguments: Any) -> Any:
    nothing: Any = None
    context = FunctionInvocationContext(
        made,
        arguments,
        call_id="c1",
        session=None,
        kwargs=kwargs or {},
        run=nothing,
        changes=ToolChanges([made]),
        progress=lambda _text: None,
    )
    return await call_function(made, made.bind(arguments), context, timeout_s=timeout_s, kwargs=kwargs or {})


def waiting(event: threading.Event, started: Callable[[], object] = lambda: None) -> FunctionTool:
    def wait() -> str:
        started()
        event.wait()
        return "late"

    return tool(wait)


async def test_an_async_function_runs_on_the_loop_with_the_callers_context_variables() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("outer")

    @tool
    async def act(number: int) -> Any:
        return number, variable.get(), asyncio.get_running_loop()

    assert await call(act, number="3") == (3, "outer", asyncio.get_running_loop())


async def test_a_sync_function_runs_in_a_daemon_thread_with_the_callers_context_variables() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("outer")

    @tool
    def act() -> Any:
        seen = variable.get()
        variable.set("inner")
        return seen, threading.current_thread()

    seen, thread = await call(act)
    assert (seen, variable.get()) == ("outer", "outer")
    assert thread is not threading.main_thread()
    assert (thread.daemon, thread.name) == (True, "tool-act")


async def test_what_a_sync_function_returns_is_awaited_on_the_loop() -> None:
    async def later() -> Any:
        return threading.current_thread()

    assert await call(tool(lambda: later(), name="act")) is threading.current_thread()


async def test_the_context_and_the_values_arrive_also_on_a_method() -> None:
    class Shop:
        city = "Rome"

        @tool
        def price(self, item: str, call: FunctionInvocationContext) -> str:
            return f"{item} {self.city} {call.call_id} {call.arguments}"

    assert await call(Shop().price, item="soap") == "soap Rome c1 {'item': 'soap'}"


async def test_kwargs_are_given_to_those_who_take_them_and_never_in_place_of_an_argument() -> None:
    def legacy(name: str, **kwargs: Any) -> Any:
        return name, kwargs

    with pytest.warns(DeprecationWarning, match="legacy"):
        takes = tool(legacy)
    kwargs = {"user_id": "u", "name": "other"}
    assert await call(takes, kwargs=kwargs, name="mine") == ("mine", {"user_id": "u"})
    assert await call(tool(lambda name: name, name="plain"), kwargs=kwargs, name="mine") == "mine"


async def test_calls_overlap() -> None:
    barrier = threading.Barrier(3)
    meet = tool(lambda: barrier.wait(10), name="meet")
    assert sorted(await asyncio.gather(*(call(meet) for _ in range(3)))) == [0, 1, 2]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [ValueError("no"), ToolError("told"), TimeoutError("its own")])
async def test_an_ordinary_exception_arrives_as_it_is(error: Exception, is_async: bool) -> None:
    with pytest.raises(type(error)) as caught:
        await call(raising(error, is_async=is_async))
    assert caught.value is error


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
async def test_what_would_end_the_process_or_the_task_becomes_a_failure(error: BaseException, is_async: bool) -> None:
    with pytest.raises(ToolCrashed, match=type(error).__name__):
        await call(raising(error, is_async=is_async))
    await asyncio.sleep(0)  # the task was not cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("is_async", [True, False])
async def test_stop_iteration_is_a_failure_and_not_a_result(is_async: bool) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await call(raising(StopIteration(1), is_async=is_async))


def raising(error: BaseException, *, is_async: bool) -> FunctionTool:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        await asyncio.sleep(0)
        raise error

    return tool(fail_later if is_async else fail)


async def test_a_function_that_hangs_ends_with_its_time(release: threading.Event) -> None:
    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    for made in (hang, waiting(release)):
        with pytest.raises(ToolTimeout, match=r"did not end within 0.01 s"):
            await call(made, timeout_s=0.01)


async def test_a_function_that_turns_its_timeout_into_an_error_still_timed_out() -> None:
    @tool
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except BaseException:
            raise ValueError("I was interrupted") from None

    with pytest.raises(ToolTimeout):
        await call(stubborn, timeout_s=0.01)


async def test_a_late_result_of_an_abandoned_thread_is_dropped_without_a_word(release: threading.Event) -> None:
    threads: list[threading.Thread] = []

    async def nobody_awaits_this() -> None: ...

    def wait() -> Any:
        threads.append(threading.current_thread())
        release.wait()
        return nobody_awaits_this()

    with pytest.raises(ToolTimeout):
        await call(tool(wait), timeout_s=0.01)
    release.set()
    await asyncio.to_thread(threads[0].join)
    await asyncio.sleep(0)  # what the thread left for the loop is done; a warning would fail the test


async def test_cancelling_abandons_a_thread_at_once(release: threading.Event) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(call(waiting(release, lambda: loop.call_soon_threadsafe(started.set)), timeout_s=None))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not release.is_set()


async def test_a_cancellation_that_the_function_swallows_or_disguises_still_counts() -> None:
    @tool
    async def swallow(how: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if how == "error":
                raise ValueError("no") from None
        return "done"

    for how in ("result", "error"):
        task = asyncio.create_task(call(swallow, how=how))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_when_all_threads_are_taken_a_sync_tool_is_refused_and_an_async_one_goes_on(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    monkeypatch.setattr(execution, "_free_threads", threading.BoundedSemaphore(1))
    hanging = asyncio.create_task(call(waiting(release)))
    await asyncio.sleep(0)

    with pytest.raises(ToolError, match="no other can be started"):
        await call(tool(lambda: 1, name="one"))

    @tool
    async def free() -> int:
        return 1

    assert await call(free) == 1
    release.set()
    assert await hanging == "late"
    assert await call(tool(lambda: 1, name="one")) == 1


async def test_a_system_without_threads_is_told_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(execution, "_free_threads", slots := threading.BoundedSemaphore(1))
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(ToolError, match="no thread left"):
        await call(tool(lambda: 1, name="one"))
    assert slots.acquire(blocking=False)


async def test_a_declared_tool_cannot_be_called() -> None:
    with pytest.raises(ToolError, match="only declared"):
        await call(tool_from_schema(None, name="declared", description=""))


def test_a_thread_that_ends_after_the_loop_did_says_nothing(release: threading.Event) -> None:
    threads: list[threading.Thread] = []
    errors: list[Any] = []
    made = waiting(release, lambda: threads.append(threading.current_thread()))
    with pytest.raises(ToolTimeout):
        asyncio.run(call(made, timeout_s=0.01))
    previous, threading.excepthook = threading.excepthook, errors.append
    try:
        release.set()
        threads[0].join(10)
    finally:
        threading.excepthook = previous
    assert not threads[0].is_alive()
    assert errors == []


HANGING_PROCESS = """
import asyncio, threading
from providers.api.tool import tool
from sidecar.tools.execution import call_function

hang = tool(lambda: threading.Event().wait(), name="hang")
try:
    asyncio.run(call_function(hang, {}, None, timeout_s=0.01, kwargs={}))
except Exception as error:
    print(type(error).__name__)
"""


def test_a_hanging_tool_does_not_hold_up_the_end_of_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", HANGING_PROCESS], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ToolTimeout\n", "")


async def test_an_async_function_that_ignores_its_cancellation_is_left_behind() -> None:
    free = asyncio.Event()
    ended = asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Stay."""
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()
        ended.set()
        return "too late"

    with pytest.raises(ToolTimeout):
        await call(stubborn, timeout_s=0.01)

    free.set()
    await ended.wait()
