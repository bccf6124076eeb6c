"""What the memory methods share: a scope and a memory from the wire and back, and their errors. Answers nothing."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from protocol.base import JsonObject
from protocol.memories import MemoryScope
from providers.api.memory import MemoryRecord, MemoryUnavailable, Scope
from providers.chat_history_memory_config import DEFAULT_COLLECTION
from providers.file_stores import StoreError as FileStoreError
from sidecar.errors import StorageFailed


def scope_of(scope: MemoryScope) -> Scope:
    """A scope as memory knows it."""
    return Scope(scope.application_id, scope.agent_id, scope.session_id, scope.user_id)


def collection_of(collection: str | None) -> str:
    """The collection that is meant."""
    return DEFAULT_COLLECTION if collection is None else collection


def item_of(record: MemoryRecord) -> JsonObject:
    """The fields of a memory, as `MemoryItem` has them."""
    scope = record.scope
    return {
        "memory_id": record.memory_id,
        "text": record.text,
        "role": record.role,
        "created_at": record.created_at or None,
        "scope": _keys(scope),
        "session_id": record.session_id,
    }


@contextmanager
def told() -> Generator[None]:
    """Tell what memory cannot do as the contract's error.

    Raises:
        StorageFailed: it cannot be read or written now.
    """
    try:
        yield
    except MemoryUnavailable as error:
        raise StorageFailed(f"the memory cannot be used: {error}") from error
    except FileStoreError as error:
        raise StorageFailed(f"the files of the memory cannot be used: {error}") from error


def _keys(scope: Scope) -> dict[str, Any]:
    return {
        "application_id": scope.application_id,
        "agent_id": scope.agent_id,
        "session_id": scope.session_id,
        "user_id": scope.user_id,
    }
