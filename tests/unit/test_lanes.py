"""Lanes: requests that name the same session take effect in the order of arrival; others do not wait for them."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sidecar.handlers.table import Lane
from sidecar.server.lanes import Lanes, Pass


@dataclass
class Log:
    """Which requests began and left, in order."""

    begun: list[int] = field(default_factory=list[int])
    left: list[int] = field(default_factory=list[int])

    async def serve(self, number: int, place: Pass, hold: int = 0) -> None:
        """One request: wait for its turn, work for some steps of the loop, leave."""
        await place.wait()
        self.begun.append(number)
        for _ in range(hold):
            await asyncio.sleep(0)
        self.left.append(number)
        place.leave()


async def begins(place: Pass) -> bool:
    """Whether a request may begin now."""
    waiting = asyncio.create_task(place.wait())
    for _ in range(5):
        await asyncio.sleep(0)
    if waiting.done():
        return True
    waiting.cancel()
    return False


async def test_reads_overtake_a_run_but_not_what_opens_the_session() -> None:
    lanes = Lanes()
    create = lanes.enter("s", Lane.OPENS)
    run = lanes.enter("s", Lane.ORDERED)
    read = lanes.enter("s", Lane.FREE)
    assert await begins(create)
    assert not await begins(run)
    assert not await begins(read)

    create.leave()

    assert await begins(read)
    assert await begins(run)
    assert await begins(lanes.enter("s", Lane.FREE))
    assert not await begins(lanes.enter("s", Lane.ORDERED))
    assert await begins(lanes.enter("other", Lane.ORDERED))
    assert await begins(lanes.enter(None, Lane.ORDERED))


async def test_who_gives_up_in_the_queue_does_not_let_the_next_one_overtake() -> None:
    lanes = Lanes()
    first, second, third = (lanes.enter("s", Lane.ORDERED) for _ in range(3))

    second.leave()

    assert not await begins(third)
    first.leave()
    assert await begins(third)


async def test_what_makes_a_session_stands_in_both_lanes() -> None:
    lanes = Lanes()
    run = lanes.enter("source", Lane.ORDERED)
    fork = lanes.enter("source", Lane.ORDERED, creates="copy")
    of_copy = lanes.enter("copy", Lane.ORDERED)
    read_of_copy = lanes.enter("copy", Lane.FREE)
    of_source = lanes.enter("source", Lane.ORDERED)

    run.leave()

    assert await begins(fork)
    assert not await begins(of_copy)
    assert not await begins(read_of_copy)
    assert not await begins(of_source)
    fork.leave()
    assert await begins(of_copy)
    assert await begins(read_of_copy)
    assert await begins(of_source)


async def test_an_import_is_waited_for_though_it_names_no_session() -> None:
    lanes = Lanes()
    imported = lanes.enter(None, Lane.FREE, creates="s")
    assert await begins(imported)
    assert not await begins(lanes.enter("s", Lane.FREE))


requests = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([Lane.ORDERED, Lane.OPENS]),
        st.sampled_from([None, None, "a", "b"]),
        st.integers(0, 4),
    ),
    max_size=20,
)


@given(requests=requests)
def test_the_order_in_each_session_is_the_order_of_arrival(
    requests: list[tuple[str, Lane, str | None, int]],
) -> None:
    async def play() -> Log:
        log, lanes = Log(), Lanes()
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number, (session, lane, creates, hold) in enumerate(requests):
                tasks.create_task(log.serve(number, lanes.enter(session, lane, creates), hold))
        return log

    log = asyncio.run(play())

    for name in ("a", "b"):
        mine = [number for number, (session, _, creates, _) in enumerate(requests) if name in (session, creates)]
        assert [number for number in log.begun if number in mine] == mine
        assert [number for number in log.left if number in mine] == mine
