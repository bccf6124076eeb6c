"""Memories in what a model saw: an explanation holds their places, never their texts, so that erased ones are gone.

A provider that shows memories notes where in its message each one stands (`providers.memory_text`). What is stored of
the message is the rest of its text; whoever asks for the explanation is shown the memories as they are kept then.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import ValidationError

from protocol.base import WireModel
from protocol.messages import Message
from providers.api.memory import Memory, Scope
from providers.memory_text import NOTED
from providers.scopes import ScopeMissing, read_settled, scope_of
from sidecar.stores.base import Refused
from sidecar.stores.memory_rules import instant
from sidecar.stores.paging import encode_position

ERASED: Final = "(erased)"
"""Stands where a memory stood that is not there any more."""

_PAGE: Final = 8

Texts = Mapping[tuple[str, Scope, str], str]
"""Texts of memories, by collection, scope and id."""
NO_TEXTS: Final[Texts] = {}


class RecalledMemory(WireModel):
    """A memory in a message's text."""

    memory_id: str
    created_at: str
    start: int
    end: int


class Recalled(WireModel):
    """The memories in a message's text, in order, and whose they are."""

    collection: str
    scope: dict[str, str]
    length: int
    """Of the whole text."""
    memories: tuple[RecalledMemory, ...]

    @property
    def whose(self) -> Scope:
        """The scope that was searched."""
        return scope_of(read_settled(self.scope))

    def cut_out(self, text: str) -> str | None:
        """The text without the memories; `None` if they cannot stand where they were noted: somebody has changed it."""
        pieces: list[str] = []
        at = 0
        for one in self.memories:
            if not at <= one.start <= one.end:
                return None
            pieces.append(text[at : one.start])
            at = one.end
        return "".join((*pieces, text[at:])) if at <= len(text) == self.length else None

    def put_back(self, rest: str, texts: Texts) -> str:
        """The text with the memories as they are now."""
        pieces: list[str] = []
        at = used = 0
        for one in self.memories:
            before = one.start - at
            pieces += (
                rest[used : used + before],
                texts.get((self.collection, self.whose, one.memory_id), ERASED),
            )
            at, used = one.end, used + before
        return "".join((*pieces, rest[used:]))


def has_memories(message: Message) -> bool:
    """Whether a message says that memories stand in it."""
    return NOTED in (message.metadata or {})


def recalled_in(message: Message) -> Recalled | None:
    """Where its memories stand; `None` where that is not said in our own words."""
    try:
        found = Recalled.model_validate((message.metadata or {}).get(NOTED))
        scope_of(read_settled(found.scope))
        for one in found.memories:
            instant(one.created_at)
    except (ValidationError, ScopeMissing, Refused):
        return None
    return found


async def texts_of(recalled: Iterable[Recalled], memory: Memory) -> Texts:
    """The texts of those memories that are there.

    Raises:
        MemoryUnavailable: they cannot be read now.
    """
    texts: dict[tuple[str, Scope, str], str] = {}
    for one in recalled:
        scope = one.whose
        for wanted in one.memories:
            key = (one.collection, scope, wanted.memory_id)
            if key not in texts:
                text = await _text_of(memory, one.collection, scope, wanted)
                if text is not None:
                    texts[key] = text
    return texts


async def _text_of(memory: Memory, collection: str, scope: Scope, wanted: RecalledMemory) -> str | None:
    """Its text, looked for among what was said at its time: pages run by time, newest first."""
    when = instant(wanted.created_at)
    cursor: str | None = encode_position(when + 1, 0)
    while cursor is not None:
        page = await memory.page(collection, scope, cursor, _PAGE)
        for record in page.items:
            if record.memory_id == wanted.memory_id:
                return record.text
            if instant(record.created_at) < when:
                return None
        cursor = page.next
    return None
