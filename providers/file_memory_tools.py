"""The seven tools of `file_memory`, for the files of one folder. A model that asks for what cannot be is told why."""

import fnmatch
from collections.abc import Callable
from typing import Annotated, Any, Final

from providers.api.tool import FunctionTool, ToolError, tool

from .file_memory_folder import MemoryFolder
from .file_memory_names import NameRefused, shown
from .file_search import SearchError, search
from .file_stores import StoreError
from .text_edits import EditError, LineEdit, replaced, with_lines

MAX_GLOB: Final = 256
"""Characters."""

FileName = Annotated[str, "The file's name; there are no folders."]
Glob = Annotated[str | None, "Only files whose names match, such as *.md."]


class FileMemoryTools:
    """Tools for one folder; the folder is never an argument."""

    def __init__(self, folder: MemoryFolder) -> None:
        self._folder = folder
        self.all: tuple[FunctionTool, ...] = (
            self.file_memory_write,
            self.file_memory_read,
            self.file_memory_delete,
            self.file_memory_ls,
            self.file_memory_grep,
            self.file_memory_replace,
            self.file_memory_replace_lines,
        )

    @tool
    async def file_memory_write(
        self,
        file_name: FileName,
        content: Annotated[str, "The whole text. What was there before goes."],
        description: Annotated[str | None, "What it is about, in a sentence; it stands in the index."] = None,
    ) -> str:
        """Write a memory file."""
        try:
            await self._folder.write(file_name, content, description or "")
        except (NameRefused, StoreError) as error:
            return f"Could not write file '{shown(file_name)}': {error}."
        described = " with description" if description and description.strip() else ""
        return f"File '{shown(file_name)}' written{described}."

    @tool
    async def file_memory_read(self, file_name: FileName) -> str:
        """Read a memory file."""
        try:
            text = await self._folder.read(file_name)
        except NameRefused:
            text = None
        except StoreError as error:
            return f"Could not read file '{shown(file_name)}': {error}."
        return text if text is not None else _not_found(file_name)

    @tool
    async def file_memory_delete(self, file_name: FileName) -> str:
        """Delete a memory file, and its description."""
        try:
            deleted = await self._folder.delete(file_name)
        except NameRefused:
            deleted = False
        except StoreError as error:
            return f"Could not delete file '{shown(file_name)}': {error}."
        return f"File '{shown(file_name)}' deleted." if deleted else _not_found(file_name)

    @tool
    async def file_memory_ls(self, glob_pattern: Glob = None) -> list[dict[str, str]] | str:
        """List the memory files with their descriptions."""
        matches = _matcher(glob_pattern)
        try:
            notes = await self._folder.notes()
        except StoreError as error:
            return f"Could not list the files: {error}."
        return [
            {"name": note.name, "type": "file", "description": note.description} for note in notes if matches(note.name)
        ]

    @tool
    async def file_memory_grep(
        self,
        regex_pattern: Annotated[str, "A regular expression of at most 256 characters; letter case does not count."],
        glob_pattern: Glob = None,
    ) -> list[dict[str, Any]] | str:
        """Search the texts of the memory files, line by line."""
        matches = _matcher(glob_pattern)
        try:
            texts = await self._folder.texts()
            return await search(regex_pattern, {name: text for name, text in texts.items() if matches(name)})
        except SearchError as error:
            raise ToolError(f"Could not search the files: {error}.") from None
        except StoreError as error:
            return f"Could not search the files: {error}."

    @tool
    async def file_memory_replace(
        self,
        file_name: FileName,
        old_string: Annotated[str, "The text to replace, exactly as it stands there."],
        new_string: Annotated[str, "What to put in its place."],
        replace_all: Annotated[bool, "Replace it wherever it occurs; otherwise it must occur once."] = False,
    ) -> str:
        """Replace some text in a memory file."""
        count = 0

        def edit(text: str) -> str:
            nonlocal count
            text, count = replaced(text, old_string, new_string, replace_all=replace_all)
            return text

        refusal = await self._change(file_name, edit)
        return refusal or f"Replaced {count} occurrence(s) in '{shown(file_name)}'."

    @tool
    async def file_memory_replace_lines(
        self, file_name: FileName, edits: Annotated[list[LineEdit], "All are made, or none."]
    ) -> str:
        """Replace or remove whole lines of a memory file, by their numbers before this call."""
        refusal = await self._change(file_name, lambda text: with_lines(text, edits))
        return refusal or f"Replaced {len(edits)} line(s) in '{shown(file_name)}'."

    async def _change(self, file_name: str, edit: Callable[[str], str]) -> str | None:
        """Edit a file; what went wrong, if something did."""
        try:
            found = await self._folder.change(file_name, edit)
        except NameRefused:
            found = False
        except (StoreError, EditError) as error:
            return f"Could not edit file '{shown(file_name)}': {error}."
        return None if found else _not_found(file_name)


def _not_found(file_name: str) -> str:
    return f"File '{shown(file_name)}' not found."


def _matcher(glob_pattern: str | None) -> Callable[[str], bool]:
    """Whether a name matches; letter case does not count, and a blank pattern matches all.

    Raises:
        ToolError: the pattern is too long.
    """
    if glob_pattern is None or not glob_pattern.strip():
        return lambda _: True
    if len(glob_pattern) > MAX_GLOB:
        raise ToolError(f"A glob pattern has at most {MAX_GLOB} characters.")
    pattern = glob_pattern.casefold()
    return lambda name: fnmatch.fnmatchcase(name.casefold(), pattern)
