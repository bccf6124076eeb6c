"""The slot of a session: one run at a time, the others in order, and nobody is lost on the way."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sidecar.sessions.slot import RunSlot
from sidecar.sessions.tickets import RunTicket


def ticket(name: str) -> RunTicket:
    return RunTicket("s", name)


async def test_one_run_has_the_session_and_the_others_come_in_order() -> None:
    slot, first, second, third = RunSlot(), ticket("1"), ticket("2"), ticket("3")
    assert slot.take(first)
    assert not slot.take(second)

    places = [slot.join(second), slot.join(third)]

    assert [place.position for place in places] == [1, 2]
    assert slot.waiting == (second, third)
    slot.leave(first)
    assert slot.holder is second
    assert await slot.turn_comes(second, places[0])
    slot.leave(second)
    assert await slot.turn_comes(third, places[1])
    slot.leave(third)
    assert slot.holder is None
    assert slot.take(first)


async def test_a_turn_that_comes_before_anybody_waits_for_it_is_not_lost() -> None:
    slot, first, second = RunSlot(), ticket("1"), ticket("2")
    slot.take(first)
    place = slot.join(second)

    slot.leave(first)  # the queued run is still being stored

    assert await slot.turn_comes(second, place)
    assert slot.holder is second


async def test_a_run_that_is_stopped_leaves_the_queue_and_the_next_moves_up() -> None:
    slot, first, second, third = RunSlot(), ticket("1"), ticket("2"), ticket("3")
    slot.take(first)
    place = slot.join(second)
    slot.join(third)
    waiting = asyncio.create_task(slot.turn_comes(second, place))

    second.cancel()

    assert not await waiting
    assert slot.waiting == (third,)
    slot.leave(first)
    assert slot.holder is third


async def test_between_two_runs_nobody_slips_in() -> None:
    slot, first, second, intruder = RunSlot(), ticket("1"), ticket("2"), ticket("x")
    slot.take(first)
    slot.join(second)

    slot.leave(first)

    assert not slot.take(intruder)
    slot.leave(intruder)
    assert slot.holder is second


@given(steps=st.lists(st.tuples(st.sampled_from(["arrive", "end", "give up"]), st.integers(0, 9)), max_size=40))
def test_whatever_happens_each_run_gets_the_session_at_most_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    async def play() -> list[int]:
        slot, arrived, had, gone = RunSlot(), list[RunTicket](), list[int](), set[RunTicket]()
        for step, number in steps:
            if step == "arrive":
                new = ticket(str(len(arrived)))
                arrived.append(new)
                if not slot.take(new):
                    slot.join(new)
            elif step == "end" and slot.holder is not None:
                gone.add(slot.holder)
                slot.leave(slot.holder)
            elif step == "give up" and slot.waiting:
                leaving = slot.waiting[number % len(slot.waiting)]
                gone.add(leaving)
                slot.leave(leaving)
            if slot.holder is not None and (not had or had[-1] != int(slot.holder.run_id)):
                had.append(int(slot.holder.run_id))
            left = [one for one in arrived if one not in gone]
            assert [*([slot.holder] if slot.holder else []), *slot.waiting] == left
        return had

    had = asyncio.run(play())
    assert had == sorted(set(had))
