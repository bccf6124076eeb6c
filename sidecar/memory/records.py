"""From a provider's record to what a store writes, and back. It decides nothing."""

import json
from typing import Any

from providers.api.memory import MemoryRecord
from sidecar.stores.memory_rows import MemoryRow, MemoryWrite


def write_of(record: MemoryRecord) -> MemoryWrite:
    """What a unit carries of a record."""
    rest = {"authorName": record.author_name, "messageId": record.message_id, "metadata": record.metadata or None}
    return MemoryWrite(
        collection=record.collection,
        memory_id=record.memory_id,
        scope=record.scope,
        text=record.text,
        created_at=record.created_at,
        context=record.context,
        role=record.role,
        session=record.session_id,
        body=json.dumps({name: value for name, value in rest.items() if value is not None}).encode(),
    )


def record_of(row: MemoryRow) -> MemoryRecord:
    """The record that was written."""
    write = row.write
    rest: dict[str, Any] = json.loads(write.body)
    return MemoryRecord(
        memory_id=write.memory_id,
        collection=write.collection,
        scope=write.scope,
        text=write.text,
        created_at=write.created_at,
        role=write.role,
        author_name=rest.get("authorName"),
        message_id=rest.get("messageId"),
        session_id=write.session,
        context=write.context,
        metadata=rest.get("metadata", {}),
    )
