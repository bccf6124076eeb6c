"""A session's transcript as the model's history: loaded once, shared, kept up to date by the runs. Never copied."""

from collections.abc import Iterable, Sequence

from protocol.messages import Message
from sidecar.stores.base import SessionStore

LOAD_PAGE = 1_000
LOAD_PAGE_BYTES = 64 << 20


class Transcript:
    """The messages of one session that the model may see, oldest first.

    The loaded messages are kept between runs up to `cache_bytes` of stored text, and read again above that.
    """

    def __init__(self, store: SessionStore, session_id: str, cache_bytes: int) -> None:
        self._store = store
        self._session_id = session_id
        self._cache_bytes = cache_bytes
        self._messages: tuple[Message, ...] | None = None
        self._bytes = 0
        self._changes = 0
        """How often what is stored has changed: a read that one has come between is stale."""

    async def load(self, session_id: str) -> Sequence[Message]:
        """All messages; those of the run that is under way are not among them."""
        del session_id  # one transcript serves one session
        while self._messages is None:
            changes = self._changes
            messages, size = await self._read()
            if changes == self._changes:
                self._messages, self._bytes = messages, size
        return self._messages

    def extend(self, messages: Iterable[Message]) -> None:
        """A run has ended and left these messages; they are stored, so a read may have brought them just before."""
        self._changes += 1
        if self._messages is None:
            return
        known = {message.message_id for message in self._messages} - {None}
        added = tuple(message for message in messages if message.message_id not in known)
        self._bytes += sum(len(message.text) for message in added)
        self._messages = (*self._messages, *added) if self._bytes <= self._cache_bytes else None

    def forget(self) -> None:
        """What is stored has changed in another way: read it again."""
        self._changes += 1
        self._messages = None

    async def _read(self) -> tuple[tuple[Message, ...], int]:
        """All that is stored, and its size in bytes."""
        found: list[Message] = []
        size = 0
        after: int | None = None
        while True:
            page = await self._store.messages(self._session_id, after=after, limit=LOAD_PAGE, max_bytes=LOAD_PAGE_BYTES)
            for row in page.items:
                found.append(Message.model_validate_json(row.body))
                size += len(row.body)
                after = row.position
            if page.next is None:
                return tuple(found), size
