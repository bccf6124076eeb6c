"""One folder of a file memory: its files, their descriptions and its index. It knows no model and no tool.

    notes.md   notes_description.md   memories.md (the index)

The index is taken away before a file changes and written anew afterwards: one that is there is true. Whoever finds
none, because a process died in between, makes it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .file_memory_index import MAX_INDEX_CHARS, index_text, listed
from .file_memory_names import INDEX, checked_name, description_of, is_hidden, key_of
from .file_stores import SharedStore, StoreError

MAX_FILES: Final = 1_000
MAX_DESCRIPTION: Final = 2_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class Note:
    """A file, as it is listed."""

    name: str
    description: str = ""


class MemoryFolder:
    """The files of one scope or session. Any number of them may work on one folder at the same time.

    Every method that takes a file's name raises `NameRefused` for one that no file may have, and every method raises
    `StoreError` where the store cannot do it.
    """

    def __init__(self, store: SharedStore, path: str, max_files: int = MAX_FILES) -> None:
        self._store = store
        self._path = path
        self._max_files = max_files

    async def read(self, name: str) -> str | None:
        """A file's text; `None` if there is none of that name."""
        found = (await self._names()).get(key_of(checked_name(name)))
        return await self._store.read(self._at(found)) if found is not None else None

    async def write(self, name: str, text: str, description: str = "") -> None:
        """Write a file, and what describes it: without a description, an earlier one goes."""
        name = checked_name(name)
        if len(description) > MAX_DESCRIPTION:
            raise StoreError(f"its description has {len(description)} characters, and may have {MAX_DESCRIPTION}")
        async with self._store.turn(self._path):
            names = await self._names()
            known = names.get(key_of(name))
            if known is None and len(names) >= self._max_files:
                raise StoreError(f"there are {self._max_files} files already; delete one first")
            name = known or name
            await self._store.delete(self._at(INDEX))
            try:
                await self._write(name, text, description)
            finally:
                await self._make_index()

    async def change(self, name: str, edit: Callable[[str], str]) -> bool:
        """Put another text in the place of a file's; whether there is such a file. Its description stays.

        Args:
            name: Of the file.
            edit: Given the text, returns the new one; called in a thread, because texts may be long. What it raises is
                raised, and nothing is written.
        """
        name = checked_name(name)
        async with self._store.turn(self._path):
            found = (await self._names()).get(key_of(name))
            text = await self._store.read(self._at(found)) if found is not None else None
            if found is None or text is None:
                return False
            await self._store.write(self._at(found), await asyncio.to_thread(edit, text))
        return True

    async def delete(self, name: str) -> bool:
        """Delete a file and its description; whether it was there."""
        name = checked_name(name)
        if key_of(name) not in await self._names():
            return False
        async with self._store.turn(self._path):
            found = (await self._names()).get(key_of(name))
            if found is None:
                return False
            await self._store.delete(self._at(INDEX))
            try:
                await self._store.delete(self._at(description_of(found)))
                await self._store.delete(self._at(found))
            finally:
                await self._make_index()
        return True

    async def clear(self) -> int:
        """Delete everything; how many files there were."""
        async with self._store.turn(self._path):
            names = await self._names()
            entries = [entry.name for entry in await self._store.entries(self._path) if not entry.is_folder]
            for name in entries:
                await self._store.delete(self._at(name))
            return len(names)

    async def notes(self) -> Sequence[Note]:
        """All files with their descriptions, by alphabet."""
        names = sorted((await self._names()).values(), key=lambda name: (name.casefold(), name))
        descriptions = await self._descriptions(names)
        return [Note(name, descriptions.get(name, "")) for name in names]

    async def texts(self) -> Mapping[str, str]:
        """All files' texts, by name and by alphabet; one that cannot be read is left out."""
        texts: dict[str, str] = {}
        for name in sorted((await self._names()).values(), key=lambda name: (name.casefold(), name)):
            with suppress(StoreError):
                text = await self._store.read(self._at(name))
                if text is not None:
                    texts[name] = text
        return texts

    async def index(self) -> str | None:
        """The index; `None` where there are no files. One that is missing is made."""
        if not await self._names():
            return None
        text = await self._store.read(self._at(INDEX))
        if text is not None and len(text) <= MAX_INDEX_CHARS:
            return text
        async with self._store.turn(self._path):
            return await self._make_index()

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"

    async def _names(self) -> dict[str, str]:
        """The files' names, by what they are found by. Of two that differ in letter case only, the last one counts."""
        entries = await self._store.entries(self._path)
        names = [entry.name for entry in entries if not entry.is_folder and not is_hidden(entry.name)]
        return {key_of(name): name for name in names}

    async def _write(self, name: str, text: str, description: str) -> None:
        """Both the file and its description, or neither."""
        before = await self._store.read(self._at(description_of(name)))
        await self._describe(name, description)
        try:
            await self._store.write(self._at(name), text)
        except StoreError:
            await self._describe(name, before or "")
            raise

    async def _describe(self, name: str, description: str) -> None:
        path = self._at(description_of(name))
        if description.strip():
            await self._store.write(path, description)
        else:
            await self._store.delete(path)

    async def _descriptions(self, names: Sequence[str]) -> dict[str, str]:
        entries = {entry.name for entry in await self._store.entries(self._path) if not entry.is_folder}
        described = [name for name in names if description_of(name) in entries]
        texts = await asyncio.gather(*(self._description(name) for name in described))
        return {name: text for name, text in zip(described, texts, strict=True) if text}

    async def _description(self, name: str) -> str:
        with suppress(StoreError):
            return (await self._store.read(self._at(description_of(name))) or "")[:MAX_DESCRIPTION]
        return ""

    async def _make_index(self) -> str | None:
        """Write the index anew, and return it. Where it cannot be written, the next one who looks for it makes it."""
        names = list((await self._names()).values())
        if not names:
            return None
        text = index_text(names, await self._descriptions(listed(names)))
        with suppress(StoreError):
            await self._store.write(self._at(INDEX), text)
        return text
