"""Layers of middleware around some work: their order, their own time, and what they may do to each other."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from providers.api.middleware import CallNext, MiddlewareError
from sidecar.agents.onion import Crashed, Layer, TookTooLong, contained, named, through


class Work:
    """What the layers stand around."""

    def __init__(self, act: Callable[[], Awaitable[None]] | None = None) -> None:
        self.done = 0
        self._act = act

    async def __call__(self) -> None:
        if self._act is not None:
            await self._act()
        self.done += 1


def layer(name: str, lines: list[str]) -> Layer:
    async def process(_context: Any, call_next: CallNext) -> None:
        lines.append(f"{name}>")
        await call_next()
        lines.append(f"<{name}")

    return process


def block_the_loop() -> None:
    time.sleep(0.03)


async def forever() -> None:
    await asyncio.Event().wait()


async def passes_on(_context: Any, call_next: CallNext) -> None:
    await call_next()


async def test_layers_stand_inside_each_other_and_around_the_work() -> None:
    lines: list[str] = []

    async def work() -> None:
        lines.append("work")

    await through([layer("a", lines), layer("b", lines)], None, work, limit_s=5)

    assert lines == ["a>", "b>", "work", "<b", "<a"]


async def test_without_layers_the_work_is_just_done() -> None:
    work = Work()

    await through([], None, work, limit_s=0.001)

    assert work.done == 1


async def test_every_layer_gets_the_one_context() -> None:
    seen: list[object] = []

    async def look(context: Any, call_next: CallNext) -> None:
        seen.append(context)
        await call_next()

    context = object()
    await through([look, look], context, Work(), limit_s=5)

    assert seen == [context, context]


async def test_what_is_inside_is_done_once_unless_it_is_repeatable() -> None:
    async def twice(_context: Any, call_next: CallNext) -> None:
        await call_next()
        await call_next()

    once, often = Work(), Work()
    with pytest.raises(MiddlewareError, match="called again"):
        await through([twice], None, once, limit_s=5)
    await through([twice], None, often, limit_s=5, repeatable=True)

    assert (once.done, often.done) == (1, 2)


# ---- the layers' own time --------------------------------------------------------------------------------------------


async def test_layers_that_hang_before_the_work_are_stopped_and_it_is_not_begun() -> None:
    async def hang(_context: Any, call_next: CallNext) -> None:
        await forever()
        await call_next()

    work = Work()
    with pytest.raises(TookTooLong):
        await through([passes_on, hang], None, work, limit_s=0.01)

    assert work.done == 0


async def test_layers_that_hang_after_the_work_are_stopped() -> None:
    async def hang(_context: Any, call_next: CallNext) -> None:
        await call_next()
        await forever()

    work = Work()
    with pytest.raises(TookTooLong):
        await through([hang], None, work, limit_s=0.01)

    assert work.done == 1


async def test_the_time_of_the_work_is_not_counted() -> None:
    work = Work(lambda: asyncio.sleep(0.1))

    await through([passes_on], None, work, limit_s=0.02)

    assert work.done == 1


async def test_the_time_before_and_after_the_work_is_counted_together() -> None:
    async def slow_twice(_context: Any, call_next: CallNext) -> None:
        await asyncio.sleep(0.06)
        await call_next()
        await asyncio.sleep(0.06)

    with pytest.raises(TookTooLong):
        await through([slow_twice], None, Work(), limit_s=0.1)


async def test_a_layer_that_blocked_the_loop_past_the_limit_gets_no_work_done() -> None:
    async def block(_context: Any, call_next: CallNext) -> None:
        block_the_loop()
        await call_next()

    work = Work()
    with pytest.raises(TookTooLong):
        await through([block], None, work, limit_s=0.01)

    assert work.done == 0


async def test_a_layer_that_makes_nothing_of_the_end_of_its_time_has_still_failed() -> None:
    async def stubborn(_context: Any, _call_next: CallNext) -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            return

    with pytest.raises(TookTooLong):
        await through([stubborn], None, Work(), limit_s=0.01)


async def test_a_layer_whose_time_is_over_cannot_begin_the_work_any_more() -> None:
    async def late(_context: Any, call_next: CallNext) -> None:
        try:
            await forever()
        finally:
            await call_next()

    work = Work()
    with pytest.raises(TookTooLong):
        await through([late], None, work, limit_s=0.01)

    assert work.done == 0


async def test_a_time_limit_of_the_work_s_own_is_no_fault_of_the_layers() -> None:
    async def limited() -> None:
        async with asyncio.timeout(0.01):
            await forever()

    with pytest.raises(TimeoutError):
        await through([passes_on], None, limited, limit_s=5)


async def test_work_that_is_done_side_by_side_is_not_counted_before_all_of_it_has_ended() -> None:
    lengths = [0.01, 0.1]

    async def both(_context: Any, call_next: CallNext) -> None:
        await asyncio.gather(call_next(), call_next())

    work = Work(lambda: asyncio.sleep(lengths.pop()))
    await through([both], None, work, limit_s=0.03, repeatable=True)

    assert work.done == 2


async def test_work_that_a_layer_left_for_later_is_not_begun_after_it_has_ended() -> None:
    later: list[asyncio.Task[None]] = []

    async def leave(_context: Any, call_next: CallNext) -> None:
        async def go() -> None:
            await call_next()

        later.append(asyncio.create_task(go()))

    work = Work()
    await through([leave], None, work, limit_s=5)
    with pytest.raises(MiddlewareError, match="had ended"):
        await later[0]

    assert work.done == 0


# ---- exceptions that are none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_what_would_end_the_task_or_the_process_becomes_an_ordinary_error(error: BaseException) -> None:
    async def end(_context: Any, _call_next: CallNext) -> None:
        raise error

    with pytest.raises(Crashed, match=type(error).__name__) as caught:
        await through([end], None, Work(), limit_s=5)

    assert named(caught.value) == type(error).__name__


async def test_an_ordinary_error_comes_out_as_it_is() -> None:
    async def fail(_context: Any, _call_next: CallNext) -> None:
        raise KeyError("secret text")

    with pytest.raises(KeyError) as caught:
        await through([fail], None, Work(), limit_s=5)

    assert named(caught.value) == "KeyError"


@pytest.mark.parametrize("answer", [None, ValueError("no"), SystemExit()])
async def test_a_cancelled_task_is_cancelled_whatever_the_code_makes_of_it(answer: BaseException | None) -> None:
    began = asyncio.Event()

    async def swallow() -> None:
        try:
            began.set()
            await forever()
        except asyncio.CancelledError:
            if answer is not None:
                raise answer from None

    task = asyncio.create_task(contained(swallow()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_work_is_told_of_a_cancel() -> None:
    began = asyncio.Event()
    told: list[str] = []

    async def work() -> None:
        try:
            began.set()
            await forever()
        finally:
            told.append("stopped")

    task = asyncio.create_task(through([passes_on], None, work, limit_s=5))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert told == ["stopped"]
