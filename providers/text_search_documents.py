"""The provider type `text_search`: searches a folder of documents. Its index is `text_search_folder`'s."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from providers.api.errors import ProviderError
from providers.api.filters import Sources
from providers.api.provider import ProviderConfig, Surroundings

from .import_thread import off_loop
from .text_search import Formatter, Progress, SearchHit, TextSearchProvider
from .text_search_config import TextSearchConfig
from .text_search_folder import FolderIndex, FolderSettings, open_folder
from .text_search_walk import Place, Rules


class FolderSearchProvider(TextSearchProvider):
    """Searches a folder of documents. Its index is brought up to date before each search."""

    config_type = TextSearchConfig

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        *,
        formatter: Formatter | None = None,
        search_sources: Sources | None = None,
    ) -> None:
        super().__init__(source_id, config, surroundings, formatter=formatter, search_sources=search_sources)
        self._folder = cast("TextSearchConfig", self.config)
        self._index: FolderIndex | None = None

    async def search(self, query: str, limit: int, progress: Progress) -> Sequence[SearchHit]:
        """The best passages of the documents.

        Raises:
            FolderUnusable: the folder cannot be opened.
            IndexUnusable: the index cannot be used.
            ProviderError: a relative folder has nothing to start from, or this is no POSIX system.
        """
        index = self._index = self._index or open_folder(self._settings())
        waiting = asyncio.wrap_future(index.refreshed(progress))
        try:
            done, _ = await asyncio.wait({waiting}, timeout=self._folder.wait_ms / 1000)
        finally:
            waiting.cancel()  # it stops nothing: the folder is looked at to the end
        if done:
            waiting.result()
        elif self._folder.wait_ms:
            progress("the documents are still being read; what is indexed by now is searched", None)
        found = await off_loop(lambda: index.search(query, limit))
        return [
            SearchHit(
                text=hit.chunk.body,
                source_name=hit.chunk.name,
                source_link=self._folder.link_base + hit.chunk.link,
                hit_id=hit.chunk.chunk_id,
                score=hit.score,
            )
            for hit in found
        ]

    def _settings(self) -> FolderSettings:
        options = self._folder
        return FolderSettings(
            place=_place(options.folder, self.surroundings.cwd),
            rules=Rules(options.include, options.exclude, options.max_files),
            max_file_bytes=options.max_file_bytes,
            max_total_bytes=options.max_total_bytes,
            in_memory=options.index == "memory",
        )


def _place(folder: str, cwd: str | None) -> Place:
    if os.open not in os.supports_dir_fd:
        raise ProviderError("text_search of a folder needs a POSIX system")
    path = Path(folder).expanduser()
    if path.is_absolute():
        return Place(path)
    if cwd is None:
        raise ProviderError("a relative folder needs a session with a working directory")
    return Place(Path(cwd), path.parts)
