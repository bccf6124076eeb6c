"""A transcript that is read from the store while a run ends: the run is in it, once."""

import asyncio
from typing import Any, cast

from protocol.messages import Message, text_message
from sidecar.sessions.transcript import Transcript
from sidecar.stores.base import Page, SessionStore, StoredMessage

FIRST = text_message("user", "one", message_id="m1")
SECOND = text_message("user", "two", message_id="m2")


class SlowStore:
    """What it reads comes late, if at all: `read` is set once it is read, and it is given when `give` is."""

    def __init__(self) -> None:
        self.stored: list[Message] = [FIRST]
        self.read, self.give = asyncio.Event(), asyncio.Event()

    async def messages(self, session: str, **page: Any) -> Page[StoredMessage]:
        bodies = [message.model_dump_json(by_alias=True).encode() for message in self.stored]
        self.read.set()
        await self.give.wait()
        return Page([StoredMessage(i, str(i), None, body, in_history=True) for i, body in enumerate(bodies, 1)], None)


async def ends_during_a_read(*, is_stored: bool) -> list[str]:
    """What is in the transcript after a run has ended while it was being read."""
    store = SlowStore()
    transcript = Transcript(cast("SessionStore", store), "s", 1 << 20)
    if is_stored:
        store.stored.append(SECOND)
    reading = asyncio.create_task(transcript.load("s"))
    await store.read.wait()
    if is_stored:  # the read ends before the run hears that it is stored
        store.give.set()
        await reading
    else:
        store.stored.append(SECOND)
    transcript.extend([SECOND])
    store.give.set()
    assert await reading is not None
    return [message.text for message in await transcript.load("s")]


async def test_a_read_from_before_the_end_is_not_kept() -> None:
    assert await ends_during_a_read(is_stored=False) == ["one", "two"]


async def test_what_a_read_has_brought_already_is_not_added_again() -> None:
    assert await ends_during_a_read(is_stored=True) == ["one", "two"]
