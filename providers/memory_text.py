"""How memories are told to a model, and which messages are worth remembering. Searches and stores nothing."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.memory import MemoryHit, MemoryRecord, Resolved

NOTED: Final = "recalled"
"""The key of a message's metadata that says where memories stand in its text; `{}`: all of it may be erased one day."""

_RECENT: Final = "The latest, in order:"
_SPOKEN: Final = frozenset({"user", "assistant"})


def spoken(messages: Iterable[Message]) -> list[Message]:
    """What somebody has said: no tool's words, nothing without a visible character."""
    return [message for message in messages if message.role in _SPOKEN and is_said(message.text)]


def is_said(text: str) -> bool:
    """Whether there is anything to see in a text; a zero-width space is nothing."""
    return any(not character.isspace() and unicodedata.category(character) not in ("Cf", "Cc") for character in text)


def shown(prompt: str, hits: Sequence[MemoryHit], recent: Sequence[MemoryRecord]) -> str:
    """Memories as text: when and by whom each was said, and how often."""
    return "".join(text for text, _ in _pieces(prompt, hits, recent))


def noted(
    prompt: str, hits: Sequence[MemoryHit], recent: Sequence[MemoryRecord], collection: str, scope: Resolved
) -> JsonObject:
    """What a message of that text notes in its metadata: which memories stand in it, and where.

    With this, what a run has seen can be kept without the memories, so that whoever erases one erases it there too.
    """
    places: list[JsonObject] = []
    at = 0
    for text, record in _pieces(prompt, hits, recent):
        if record is not None:
            place = {"memoryId": record.memory_id, "createdAt": record.created_at, "start": at, "end": at + len(text)}
            places.append(place)
        at += len(text)
    own = {"collection": collection, "scope": {**scope}, "length": at, "memories": places}
    return {"memoryIds": [place["memoryId"] for place in places], NOTED: own}


def _pieces(
    prompt: str, hits: Sequence[MemoryHit], recent: Sequence[MemoryRecord]
) -> Iterator[tuple[str, MemoryRecord | None]]:
    """The text in pieces, each with the memory that it is."""
    lines = [(_head(hit.record, hit.count), hit.record) for hit in hits]
    headings: list[tuple[str, MemoryRecord | None]] = [(prompt, None)] if prompt else []
    latest = [(_head(record, 1), record) for record in recent]
    rows = [*headings, *lines, *([(_RECENT, None), *latest] if recent else ())]
    for number, (head, record) in enumerate(rows):
        yield ("\n" if number else "") + head, None
        if record is not None:
            yield record.text, record


def _head(record: MemoryRecord, count: int) -> str:
    times = f", {count} times" if count > 1 else ""
    when = record.created_at[:16].replace("T", " ")
    return f"[{when}, {record.role or 'note'}{times}] "
