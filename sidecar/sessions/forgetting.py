"""Erases what is remembered, with all that holds it. Files of a memory are not its business.

A record is kept with the text of its turn's other records, by which it is found too: what erases the one and leaves
the other would leave the text. So the rest of a turn goes with it.
"""

from collections.abc import Collection
from typing import Final

from providers.api.memory import Memory, MemoryRecord, Scope

_PAGE: Final = 500


async def forget(memory: Memory, collection: str, scope: Scope, memory_ids: Collection[str] | None) -> int:
    """Erase records of a scope, each with the rest of its turn; returns how many there were.

    Args:
        memory: Where they are.
        collection: Theirs.
        scope: Theirs; nothing else is touched, whatever its id.
        memory_ids: `None`: all that the scope has now.

    Raises:
        MemoryUnavailable: it cannot be done now.
    """
    if memory_ids is None:
        return await memory.delete(collection, scope, None)
    return await memory.delete(collection, scope, await _with_their_turns(memory, collection, scope, set(memory_ids)))


async def _with_their_turns(memory: Memory, collection: str, scope: Scope, wanted: set[str]) -> list[str]:
    turns: dict[tuple[Scope, object], list[str]] = {}
    cursor: str | None = None
    while True:
        page = await memory.page(collection, scope, cursor, _PAGE)
        for record in page.items:
            turns.setdefault(_turn(record), []).append(record.memory_id)
        if page.next is None:
            break
        cursor = page.next
    doomed = [ids for ids in turns.values() if not wanted.isdisjoint(ids)]
    return [memory_id for ids in doomed for memory_id in ids]


def _turn(record: MemoryRecord) -> tuple[Scope, object]:
    """What records of one turn have in common."""
    return record.scope, record.metadata.get("runId", ("", record.memory_id))
