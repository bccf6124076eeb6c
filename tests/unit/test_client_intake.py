"""When the client reads on, and what it keeps of what is not read yet."""

import asyncio
from typing import Any

import pytest

from sidecar_client.intake import EventBuffer, Intake
from sidecar_client.types import RunEvent


def event(number: int, kind: str = "run.started", **data: Any) -> RunEvent:
    return RunEvent(sessionId="s", runId="r", seq=1, sub=number, epoch="e", time="t", type=kind, data=data)


def delta(number: int, text: str, message: str = "m", kind: str = "message.delta") -> RunEvent:
    return event(number, kind, messageId=message, contentIndex=0, text=text)


class Pipe:
    """Remembers whether it is read."""

    def __init__(self) -> None:
        self.reading = True
        self.intake = Intake(self.set)

    def set(self, reading: bool) -> None:
        assert reading != self.reading
        self.reading = reading


async def test_reading_stops_at_the_bound_and_goes_on_at_half_of_it() -> None:
    pipe = Pipe()
    buffer = EventBuffer(pipe.intake, bound=4)
    states: list[bool] = []
    for number in range(5):
        buffer.put(event(number))
        states.append(pipe.reading)
    assert states == [True, True, True, False, False]
    states.clear()
    for number in range(5):
        got = await buffer.get()
        assert got is not None
        assert got.get("sub") == number
        states.append(pipe.reading)
    assert states == [False, False, True, True, True]


async def test_reading_goes_on_while_somebody_waits_for_something_else() -> None:
    pipe = Pipe()
    full, empty = EventBuffer(pipe.intake, bound=1), EventBuffer(pipe.intake, bound=9)
    full.put(event(1))
    with pipe.intake.waited_for():
        assert pipe.reading
    assert not pipe.reading
    other_reader = asyncio.create_task(empty.get())
    await asyncio.sleep(0)
    assert pipe.reading
    empty.put(event(2))
    await other_reader
    assert not pipe.reading


async def test_the_end_of_a_run_lets_reading_go_on_and_keeps_what_is_unread() -> None:
    pipe = Pipe()
    buffer = EventBuffer(pipe.intake, bound=1)
    buffer.put(event(1))
    buffer.end()
    assert pipe.reading
    assert [await buffer.get() for _ in range(3)] == [event(1), None, None]


async def test_text_deltas_above_the_bound_are_joined_and_carry_the_last_number() -> None:
    buffer = EventBuffer(Pipe().intake, bound=1)
    for number, text in enumerate("abc"):
        buffer.put(delta(number, text))
    assert len(buffer) == 1
    assert await buffer.get() == delta(2, "abc")


@pytest.mark.parametrize(
    "other",
    [delta(2, "b", message="n"), delta(2, "b", kind="reasoning.delta"), event(2), {**delta(2, "b"), "runId": "child"}],
)
async def test_nothing_else_is_joined(other: RunEvent) -> None:
    buffer = EventBuffer(Pipe().intake, bound=1)
    buffer.put(delta(1, "a"))
    buffer.put(other)
    assert [await buffer.get(), await buffer.get()] == [delta(1, "a"), other]


async def test_below_the_bound_every_delta_stands_alone() -> None:
    buffer = EventBuffer(Pipe().intake, bound=3)
    buffer.put(delta(1, "a"))
    buffer.put(delta(2, "b"))
    assert len(buffer) == 2


async def test_a_joined_delta_is_bounded_so_that_joining_stays_cheap() -> None:
    buffer = EventBuffer(Pipe().intake, bound=1)
    for number in range(3):
        buffer.put(delta(number, "x" * 10_000))
    assert len(buffer) == 2
