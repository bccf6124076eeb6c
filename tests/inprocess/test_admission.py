"""Runs on their way onto a session whose store is slow or fails: each one that was accepted has exactly one end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from protocol.messages import text_message
from protocol.sessions import UpdateSessionParams
from sidecar.errors import Overloaded, StorageFailed
from sidecar.sessions.record import read_record
from sidecar.sessions.update import update
from tests.bench.fake_client import FakeClient, Hang, says
from tests.bench.open_session import Here, open_here


async def until(condition: Callable[[], Any]) -> None:
    """Let the loop turn until something is so."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def texts(here: Here) -> list[str]:
    """The stored transcript."""
    here.session.transcript.forget()
    return [message.text for message in await here.session.transcript.load("s")]


async def test_a_run_whose_turn_comes_while_its_place_is_being_stored_is_not_lost() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang], says("b")))
    first = here.start("one", "r1")
    await hang.reached.wait()
    here.store.gate.clear()
    here.cancel("r1")
    await here.store.held.wait()  # the first run's end; behind it comes the second one's place

    second = here.start("two", "r2", "queue")
    await until(lambda: here.session.slot.waiting)
    here.store.gate.set()

    assert (await first).status == "cancelled"
    assert (await second).text == "b"
    assert here.session.slot.holder is None


async def test_a_queued_run_that_cannot_begin_fails_once_and_frees_the_session() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang], says("c")))
    first = here.start("one", "r1")
    await hang.reached.wait()
    second = here.start("two", "r2", "queue")
    await until(lambda: here.session.slot.waiting and any(e["type"] == "run.queued" for e in here.sent))
    here.store.broken = True

    here.cancel("r1")

    result = await first
    assert [warning.kind for warning in result.warnings] == ["storageFailed"]
    with pytest.raises(StorageFailed):
        await second
    assert [end["status"] for end in here.ends("r1")] == ["cancelled"]
    assert [end["status"] for end in here.ends("r2")] == ["failed"]
    here.store.broken = False
    assert (await here.start("three", "r3")).text == "c"
    assert await here.stored("run.completed") == ["r1", "r2", "r3"]
    assert [len(here.ends(run_id)) for run_id in ("r1", "r2", "r3")] == [1, 1, 1]  # told once, whenever it was stored
    assert await here.unfinished() == []
    assert await texts(here) == ["one", "three", "c"]


async def test_a_run_whose_place_cannot_be_stored_is_refused_and_leaves_no_trace() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang], says("b")))
    first = here.start("one", "r1")
    await hang.reached.wait()
    here.store.broken = True

    with pytest.raises(StorageFailed):
        await here.start("two", "r2", "queue")

    here.store.broken = False
    assert here.session.slot.waiting == ()
    here.cancel("r1")
    await first
    assert await here.stored("run.queued") == []
    assert (await here.start("three", "r3")).text == "b"


async def test_a_queued_run_that_is_stopped_just_as_its_turn_comes_leaves_nothing() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang]))
    first = here.start("one", "r1")
    await hang.reached.wait()
    here.store.gate.clear()
    here.cancel("r1")
    await here.store.held.wait()
    second = here.start("two", "r2", "queue")
    await until(lambda: here.session.slot.waiting)

    here.cancel("r2")  # its turn comes while its place is still being stored
    here.store.gate.set()

    assert [(await run).status for run in (first, second)] == ["cancelled", "cancelled"]
    assert await texts(here) == ["one"]
    assert await here.stored("run.completed") == ["r1", "r2"]
    assert here.session.slot.holder is None


async def test_the_queue_s_limit_counts_who_waits() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang], says("b")), max_queued=1)
    first = here.start("one", "r1")
    await hang.reached.wait()
    second = here.start("two", "r2", "queue")
    await until(lambda: here.session.slot.waiting)

    with pytest.raises(Overloaded):
        await here.start("three", "r3", "queue")

    here.cancel("r1")
    await asyncio.gather(first, second)


async def test_input_that_comes_while_a_run_s_end_is_stored_does_not_reopen_the_run() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang]))
    first = here.start("one", "r1")
    await hang.reached.wait()
    turn = here.session.turn
    assert turn is not None
    here.store.gate.clear()
    here.cancel("r1")
    await here.store.held.wait()

    steering = asyncio.create_task(turn.steer([text_message("user", "late")]))
    here.store.gate.set()

    assert await steering is False
    assert (await first).status == "cancelled"
    assert await here.unfinished() == []
    assert await texts(here) == ["one"]


async def test_input_that_cannot_be_stored_does_not_join() -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang]))
    first = here.start("one", "r1")
    await hang.reached.wait()
    turn = here.session.turn
    assert turn is not None
    here.store.broken = True

    with pytest.raises(StorageFailed):
        await turn.steer([text_message("user", "also")])

    here.store.broken = False
    here.cancel("r1")
    await first
    assert await texts(here) == ["one"]


@pytest.mark.parametrize("run_first", [True, False])
async def test_a_change_and_the_beginning_of_a_run_do_not_undo_each_other(run_first: bool) -> None:
    hang = Hang()
    here = await open_here(FakeClient([hang]))
    here.store.gate.clear()
    change = UpdateSessionParams(session_id="s", title="new")
    first = here.start("one", "r1") if run_first else None
    if run_first:
        await here.store.held.wait()
    changing = asyncio.create_task(update(here.session, change))
    await here.store.held.wait()
    first = first or here.start("one", "r1")
    await until(lambda: here.session.turn)

    here.store.gate.set()

    assert await changing
    await hang.reached.wait()
    here.cancel("r1")
    await first
    record = read_record(await here.store.load("s"))
    assert (record.title, record.revision, record.run_starts) == ("new", 1, (1,))
    assert here.session.record == record


async def test_a_change_that_cannot_be_stored_has_not_happened() -> None:
    here = await open_here(FakeClient())
    here.store.broken = True
    params = UpdateSessionParams(session_id="s", title="new", state_patch={"k": 1})

    with pytest.raises(StorageFailed):
        await update(here.session, params)

    assert (here.session.record.title, here.session.record.revision, here.session.state()) == (None, 0, {})
    here.store.broken = False
    assert await update(here.session, params)
    assert (here.session.record.revision, here.session.state()) == (1, {"k": 1})
