"""How memories are told to a model, and which messages are worth remembering. Searches and stores nothing."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from protocol.messages import Message
from providers.api.memory import MemoryHit, MemoryRecord

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
    lines = [prompt] if prompt else []
    lines += [_line(hit.record, hit.count) for hit in hits]
    if recent:
        lines.append(_RECENT)
        lines += [_line(record, 1) for record in recent]
    return "\n".join(lines)


def _line(record: MemoryRecord, count: int) -> str:
    times = f", {count} times" if count > 1 else ""
    when = record.created_at[:16].replace("T", " ")
    return f"[{when}, {record.role or 'note'}{times}] {record.text}"
