"""Work of plug-ins runs beside the loop: once for all who ask, and whatever it raises ends nothing else."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from providers import import_thread
from providers.import_thread import Once, ThreadCrashed, in_thread, off_loop

VALUE: ContextVar[str] = ContextVar("value", default="unset")


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


async def test_it_runs_beside_the_loop_and_knows_the_caller_s_context() -> None:
    VALUE.set("here")

    assert await off_loop(lambda: (VALUE.get(), threading.current_thread() is threading.main_thread())) == (
        "here",
        False,
    )


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
async def test_what_would_end_the_process_or_the_task_is_an_ordinary_exception(error: BaseException) -> None:
    with pytest.raises(ThreadCrashed, match=type(error).__name__) as crashed:
        await off_loop(raising(error))

    assert crashed.value.__cause__ is error


async def test_an_ordinary_exception_stays_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(raising(ZeroDivisionError()))


async def test_an_import_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_thread, "IMPORT_S", 0.02)
    let_go = threading.Event()

    with pytest.raises(TimeoutError):
        await in_thread(lambda: let_go.wait(10))
    let_go.set()


class Counted:
    """Work that fails the first few times."""

    def __init__(self, failures: int = 0) -> None:
        self.count = 0
        self.go = asyncio.Event()
        self._failures = failures

    async def __call__(self) -> int:
        self.count += 1
        await self.go.wait()
        if self.count <= self._failures:
            raise ValueError
        return self.count


async def test_once_is_once_for_all_who_wait_and_for_those_who_come_later() -> None:
    work = Counted()
    once = Once(work)
    waiting = [asyncio.create_task(once.get()) for _ in range(3)]
    work.go.set()

    assert await asyncio.gather(*waiting) == [1, 1, 1]
    assert await once.get() == 1


async def test_a_failure_is_told_to_those_who_wait_and_the_next_one_tries_again() -> None:
    work = Counted(failures=1)
    once = Once(work)
    waiting = [asyncio.create_task(once.get()) for _ in range(2)]
    work.go.set()

    told = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(error) for error in told] == [ValueError, ValueError]
    assert await once.get() == 2


async def test_one_who_gives_up_waiting_takes_nothing_from_the_others() -> None:
    work = Counted()
    once = Once(work)
    first, other = asyncio.create_task(once.get()), asyncio.create_task(once.get())
    await asyncio.sleep(0)
    first.cancel()
    work.go.set()

    assert await other == 1
    assert first.cancelled() or first.cancelling()
