"""Work within a time limit, on a real loop: whatever it does at its waits, it sees no difference to a plain `await`."""

import asyncio

import pytest

from sidecar.agents.onion import Crashed
from sidecar.agents.time_limit import LimitPassed, within

LONG_S = 60.0
AT_ONCE_S = 0.0


class Waits:
    """Work that waits until it is let go on, and keeps what becomes of it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.told: list[str] = []

    async def __call__(self) -> None:
        self.reached.set()
        try:
            await self.go_on.wait()
            self.told.append("went on")
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.told.append("cleaned up")
            raise


async def under_way(work: Waits) -> asyncio.Task[None]:
    task = asyncio.create_task(within(LONG_S, work()))
    await work.reached.wait()
    return task


async def test_work_that_never_waits_sets_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def work() -> None:
        told.append("done")

    monkeypatch.delattr(asyncio, "timeout_at")
    await within(AT_ONCE_S, work())
    assert told == ["done"]


async def test_work_may_wait_again_and_again() -> None:
    told: list[int] = []

    async def work() -> None:
        for number in range(3):
            await asyncio.sleep(0)
            told.append(number)

    await within(LONG_S, work())
    assert told == [0, 1, 2]


async def test_work_that_takes_longer_is_cancelled_and_may_clean_up() -> None:
    work = Waits()
    with pytest.raises(LimitPassed):
        await within(AT_ONCE_S, work())
    assert work.told == ["cleaned up"]


async def test_work_that_makes_nothing_of_its_cancellation_took_too_long_all_the_same() -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    with pytest.raises(LimitPassed):
        await within(AT_ONCE_S, work())


async def test_the_time_before_the_first_wait_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timeout_at = asyncio.get_running_loop(), asyncio.timeout_at
    ends: list[float | None] = []
    waits_at = 0.0

    def noted(when: float | None) -> asyncio.Timeout:
        ends.append(when)
        return timeout_at(when)

    async def work() -> None:
        nonlocal waits_at
        began = waits_at = loop.time()
        while waits_at < began + 0.005:
            waits_at = loop.time()
        await asyncio.sleep(0)

    monkeypatch.setattr(asyncio, "timeout_at", noted)
    await within(LONG_S, work())
    assert len(ends) == 1
    assert ends[0] is not None
    assert ends[0] < waits_at + LONG_S


async def test_a_timeout_of_the_works_own_is_no_passed_limit() -> None:
    async def early() -> None:
        raise TimeoutError("own")

    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    for work in (early, late):
        with pytest.raises(TimeoutError):
            await within(LONG_S, work())


async def test_an_error_that_a_wait_brings_is_for_the_work_to_handle() -> None:
    told: list[str] = []
    broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await broken
        except OSError as error:
            await asyncio.sleep(0)
            told.append(str(error))

    task = asyncio.create_task(within(LONG_S, work()))
    await asyncio.sleep(0)
    broken.set_exception(OSError("broken"))
    await task
    assert told == ["broken"]


async def test_a_cancelled_task_lets_its_work_clean_up() -> None:
    work = Waits()
    task = await under_way(work)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.told == ["cleaned up"]
    assert task.cancelled()


async def test_work_goes_on_where_it_waited() -> None:
    work = Waits()
    task = await under_way(work)
    work.go_on.set()
    await task
    assert work.told == ["went on"]


@pytest.mark.parametrize("waits", [False, True])
async def test_what_would_end_the_task_or_the_process_does_not_get_out(waits: bool) -> None:
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise SystemExit(3)

    with pytest.raises(Crashed, match="SystemExit"):
        await within(LONG_S, work())


async def test_work_that_cancels_its_own_task_before_it_waits_is_cancelled_there() -> None:
    told: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(within(LONG_S, work()))
    assert told == ["cancelled"]
