"""The files that `file_memory` keeps for a scope, as memories that people can see and erase. It offers no tools."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from providers.api.memory import MemoryHit, MemoryPage, MemoryQuery, MemoryRecord, Scope
from providers.file_memory_folder import MemoryFolder
from providers.file_memory_names import NameRefused
from providers.file_memory_scope import folder_of_scope
from providers.file_stores import SharedStore, StoreError
from sidecar.memory.records import write_of
from sidecar.memory.retrieval import StoredMemory
from sidecar.stores.plain_memories import PlainMemories

COLLECTION: Final = "files"
_NO_TIME: Final = "1970-01-01T00:00:00Z"
"""Stands in where a record needs a time: a store of files keeps none, so age counts nothing."""


class _File(NamedTuple):
    key: str
    """Names in the order in which they are listed, each store's apart."""
    name: str
    description: str
    folder: MemoryFolder


class FileMemories:
    """The folders of a scope in several stores. Every method raises `StoreError` of `providers.file_stores`."""

    def __init__(self, stores: Sequence[SharedStore]) -> None:
        """Look into these stores; none is touched yet."""
        self._stores = stores

    async def page(self, scope: Scope, cursor: str | None, limit: int, max_bytes: int) -> MemoryPage:
        """Some files by name, at least one where there is one. A file that cannot be read is left out."""
        found: list[MemoryRecord] = []
        size, last = 0, ""
        for file in await self._files(scope):
            if cursor is not None and file.key <= cursor:
                continue
            record = await _record(file, scope)
            if record is None:
                continue
            size += len(record.text.encode())
            if found and (len(found) >= limit or size > max_bytes):
                return MemoryPage(found, last)
            found.append(record)
            last = file.key
        return MemoryPage(found)

    async def search(self, query: MemoryQuery) -> Sequence[MemoryHit]:
        """The files that fit best, by name, description and text."""
        shelf = PlainMemories()
        shelf.is_open = True
        known: dict[str, MemoryRecord] = {}
        for file in await self._files(query.scope):
            record = await _record(file, query.scope)
            if record is not None:
                known[file.key] = record
                text = f"{file.name}\n{record.text}"
                shelf.put(write_of(MemoryRecord(file.key, query.collection, query.scope, text, _NO_TIME)))
        hits = await StoredMemory(shelf).search(query)
        return [MemoryHit(known[hit.record.memory_id], hit.score, hit.count) for hit in hits]

    async def delete(self, scope: Scope, names: Collection[str] | None) -> int:
        """Delete files with their descriptions (`None`: all), and what the index says of them; how many there were."""
        path, deleted = folder_of_scope(scope), 0
        for store in self._stores:
            folder = MemoryFolder(store, path)
            if names is not None:
                for name in names:
                    with suppress(NameRefused):  # no file is called so
                        deleted += await folder.delete(name)
            elif await store.entries(path):  # to clear a folder would make it
                deleted += await folder.clear()
        return deleted

    async def _files(self, scope: Scope) -> list[_File]:
        return sorted([file async for file in self._listed(scope)])

    async def _listed(self, scope: Scope) -> AsyncIterator[_File]:
        path = folder_of_scope(scope)
        for number, store in enumerate(self._stores):
            folder = MemoryFolder(store, path)
            for note in await folder.notes():
                yield _File(f"{note.name.casefold()}/{note.name}/{number}", note.name, note.description, folder)


async def _record(file: _File, scope: Scope) -> MemoryRecord | None:
    """A file as a memory: what describes it, and its text; `None` if it cannot be read."""
    with suppress(StoreError):
        text = await file.folder.read(file.name)
        if text is not None:
            told = f"{file.description}\n\n{text}" if file.description else text
            return MemoryRecord(file.name, COLLECTION, scope, told, "")
    return None
