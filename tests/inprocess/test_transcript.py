"""A transcript in memory: kept between runs up to its limit, and read from the store again above it."""

from typing import Any, cast

from protocol.messages import Message, text_message
from sidecar.sessions.transcript import Transcript
from sidecar.stores.base import Page, SessionStore, StoredMessage


class CountingStore:
    """Holds messages of one session, and counts how often they are read."""

    def __init__(self, *messages: Message) -> None:
        self.bodies = [message.model_dump_json(by_alias=True).encode() for message in messages]
        self.reads = 0

    async def messages(self, session: str, **page: Any) -> Page[StoredMessage]:
        self.reads += 1
        rows = [
            StoredMessage(position, str(position), None, body, in_history=True)
            for position, body in enumerate(self.bodies, start=1)
        ]
        return Page(rows, None)


async def test_a_history_is_kept_up_to_its_limit_only() -> None:
    stored = text_message("user", "hello")
    room = len(CountingStore(stored).bodies[0]) + len("answer")
    for limit, reads in ((room, 1), (room - 1, 2)):
        store = CountingStore(stored)
        transcript = Transcript(cast("SessionStore", store), "s", limit)
        assert [message.text for message in await transcript.load("s")] == ["hello"]

        answer = text_message("assistant", "answer")
        store.bodies.append(answer.model_dump_json(by_alias=True).encode())
        transcript.extend([answer])

        assert [message.text for message in await transcript.load("s")] == ["hello", "answer"]
        assert store.reads == reads
