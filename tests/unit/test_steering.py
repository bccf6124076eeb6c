"""A run's inbox: what was accepted joins exactly once, and nothing is accepted that could not join."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from protocol.messages import Message, text_message
from sidecar.agents.steering import Steering


def storing(*texts: str, until: asyncio.Event | None = None) -> Callable[[], Awaitable[Sequence[Message]]]:
    """A store that takes these messages in."""

    async def store() -> Sequence[Message]:
        if until is not None:
            await until.wait()
        return [text_message("user", text) for text in texts]

    return store


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_what_was_accepted_is_taken_once_in_order() -> None:
    steering = Steering()
    assert await steering.offer(storing("a", "b"))
    assert await steering.offer(storing("c"))

    assert texts(await steering.take()) == ["a", "b", "c"]
    assert await steering.take() == ()


async def test_a_run_does_not_end_while_something_waits_for_its_model() -> None:
    steering = Steering()
    await steering.offer(storing("a"))

    assert not await steering.end_if_empty()
    await steering.take()
    assert await steering.end_if_empty()
    assert await steering.end_if_empty()


async def test_after_the_end_nothing_is_stored_any_more() -> None:
    steering = Steering()
    await steering.offer(storing("a"))
    assert texts(await steering.end()) == ["a"]

    async def never() -> Sequence[Message]:
        raise AssertionError

    assert not await steering.offer(never)


async def test_input_that_is_being_stored_is_waited_for() -> None:
    steering, stored = Steering(), asyncio.Event()
    offered = asyncio.create_task(steering.offer(storing("a", until=stored)))
    await asyncio.sleep(0)
    closing = asyncio.create_task(steering.end_if_empty())
    taking = asyncio.create_task(steering.take())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not closing.done()
    assert not taking.done()

    stored.set()

    assert await offered
    assert not await closing
    assert texts(await taking) == ["a"]


async def test_input_that_cannot_be_stored_does_not_join_and_the_next_may() -> None:
    steering = Steering()

    async def full() -> Sequence[Message]:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await steering.offer(full)

    assert await steering.take() == ()
    assert await steering.offer(storing("b"))
