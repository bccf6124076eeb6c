"""The index of one folder of documents, kept up to date: what is new, changed or gone since it was last looked at.

It looks when it is asked to, and watches nothing. How files are found, read, cut and searched is said elsewhere.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakValueDictionary

import platformdirs

from .text_chunks import OVERLAP, PAGE_END, SIZE, Chunk, chunks
from .text_search_index import LAYOUT, ChunkIndex, FoundChunk, FullTextIndex, IndexedChunk, IndexedFile
from .text_search_readers import PLAIN, Document, Unreadable, reader_of
from .text_search_walk import Place, Rules, Stamp, Walk, Walker

Tell = Callable[[str, dict[str, Any]], None]
"""Takes what is told of the indexing, for people and for programs. It is called on a thread of the index."""

TELL_EVERY: Final = 50
"""Files between two pieces of progress."""
SETTLED_NS: Final = 2_000_000_000
"""A file is trusted by its times only if they were older than this when it was read: some disks count in seconds."""
_SEPARATOR: Final = " \u203a "


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """All that decides what is in an index: equal settings share one."""

    place: Place
    rules: Rules
    max_file_bytes: int
    max_total_bytes: int
    in_memory: bool


class FolderIndex:
    """One folder's documents. It may be used from any thread."""

    def __init__(self, settings: FolderSettings, index: ChunkIndex) -> None:
        self._settings = settings
        self._index = index
        self._walker = Walker(settings.place, settings.rules, is_readable=lambda path: reader_of(path) is not None)
        self._lock = threading.Lock()
        self._next: _Scan | None = None
        self._is_running = False

    def search(self, query: str, limit: int) -> Sequence[FoundChunk]:
        """The best chunks of what is indexed by now. It blocks.

        Raises:
            IndexUnusable: the index cannot be read now.
        """
        return self._index.search(query, limit)

    def refreshed(self, tell: Tell) -> "Future[None]":
        """Look at the folder, on a thread: done when all that was there at the call is indexed.

        Whoever asks while it is being looked at shares the next look. The future raises `FolderUnusable` or
        `IndexUnusable`; cancelling it has no effect.
        """
        with self._lock:
            if self._next is None:
                self._next = _Scan()
            scan = self._next
            scan.tellers.append(tell)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._work, name="text-search", daemon=True).start()
            return scan.future

    def _work(self) -> None:
        while True:
            with self._lock:
                scan, self._next = self._next, None
                if scan is None:
                    self._is_running = False
                    return
            try:
                self._look(scan.tell)
            except Exception as error:
                scan.future.set_exception(error)
            else:
                scan.future.set_result(None)

    def _look(self, tell: Tell) -> None:
        walk = self._walker.walk()
        wanted, left_out = self._within_limits(walk)
        known = self._index.files()
        gone = [path for path in known if path not in wanted]
        if gone:
            self._index.remove(gone)
        changed = [path for path, stamp in wanted.items() if not _is_current(known.get(path), stamp, path)]
        unreadable: list[str] = []
        for done, path in enumerate(changed):
            if done % TELL_EVERY == 0:
                tell(f"reading documents: {done} of {len(changed)}", {"done": done, "total": len(changed)})
            self._take(path, known.get(path), unreadable)
        if changed or gone:
            counts = {"documents": len(wanted), "read": len(changed), "removed": len(gone), "leftOut": left_out}
            tell(_summary(counts, unreadable, is_cut=walk.is_cut), {**counts, "unreadable": len(unreadable)})

    def _within_limits(self, walk: Walk) -> tuple[dict[str, Stamp], int]:
        """The files that are neither too long by themselves nor too much together, and how many are left out."""
        wanted: dict[str, Stamp] = {}
        left = self._settings.max_total_bytes
        for path, stamp in walk.files.items():
            if stamp.size <= min(left, self._settings.max_file_bytes):
                wanted[path] = stamp
                left -= stamp.size
        return wanted, len(walk.files) - len(wanted)

    def _take(self, path: str, known: IndexedFile | None, unreadable: list[str]) -> None:
        """Read one file, unless it says what it said before."""
        now = time.time_ns()
        found = self._walker.read(path, self._settings.max_file_bytes)
        if found is None:
            self._index.remove([path])
            unreadable.append(f"{path}: it cannot be opened")
            return
        data, stamp = found
        reader = reader_of(path) or PLAIN
        digest = hashlib.sha256(data).hexdigest()
        if known is not None and (known.sha256, known.reader) == (digest, reader.version):
            self._index.touch(path, IndexedFile(stamp, now, digest, reader.version, known.problem))
            return
        problem: str | None = None
        pieces: list[IndexedChunk] = []
        try:
            pieces = _indexed(path, reader.read(data))
        except Unreadable as error:
            problem = str(error)
        except Exception as error:  # whatever a malformed file makes of a reader: the others are read all the same
            problem = f"it cannot be read: {type(error).__name__}"
        if problem is not None:
            unreadable.append(f"{path}: {problem}")
        self._index.put(path, IndexedFile(stamp, now, digest, reader.version, problem), pieces)


class _Scan:
    """One look at the folder, and who waits for it."""

    def __init__(self) -> None:
        self.future: Future[None] = Future()
        self.future.set_running_or_notify_cancel()  # from here on nobody can cancel it for the others
        self.tellers: list[Tell] = []

    def tell(self, message: str, data: dict[str, Any]) -> None:
        """Tell everyone who waits."""
        for tell in tuple(self.tellers):
            tell(message, data)


def open_folder(settings: FolderSettings) -> FolderIndex:
    """The index with these settings, one a process. Nothing is read or made before it is used."""
    with _opening:
        index = _open.get(settings)
        if index is None:
            path = None if settings.in_memory else index_file(settings)
            index = _open[settings] = FolderIndex(settings, FullTextIndex(path))
        return index


def index_file(settings: FolderSettings) -> Path:
    """Where an index is kept: in the platform's folder for what may be lost, not beside the documents."""
    identity = repr((LAYOUT, SIZE, OVERLAP, settings))
    name = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    cache = Path(platformdirs.user_cache_dir("agent-sidecar", appauthor=False))
    return cache / "text-search" / f"{name}.db"


_opening: Final = threading.Lock()
_open: Final[WeakValueDictionary[FolderSettings, FolderIndex]] = WeakValueDictionary()


def _is_current(known: IndexedFile | None, stamp: Stamp, path: str) -> bool:
    if known is None or known.stamp != stamp or known.reader != (reader_of(path) or PLAIN).version:
        return False
    return max(stamp.mtime_ns, stamp.ctime_ns) < known.checked_ns - SETTLED_NS


def _indexed(path: str, document: Document) -> list[IndexedChunk]:
    text = document.text
    found: list[IndexedChunk] = []
    unit = {"plain": "\n", "markdown": "\n", "pages": PAGE_END, "web": None}[document.kind]
    number, counted = 1, 0
    for chunk in chunks(text, has_headings=document.has_headings):
        link = quote(path)
        if unit is not None:
            number += text.count(unit, counted, chunk.start)
            counted = chunk.start
            link += f"#page={number}" if unit == PAGE_END else f"#L{number}"
        body = text[chunk.start : chunk.end]
        digest = hashlib.sha256(f"{path}\0{body}".encode("utf-8", "replace")).hexdigest()
        found.append(IndexedChunk(digest[:16], _name(path, document, chunk), link, body))
    return found


def _name(path: str, document: Document, chunk: Chunk) -> str:
    """What a chunk's place is called: the document's title and the headings, or else its path."""
    titles = dict.fromkeys((document.title, *chunk.headings) if document.title else chunk.headings)
    return _SEPARATOR.join(title for title in titles if title) or path


def _summary(counts: dict[str, int], unreadable: Sequence[str], *, is_cut: bool) -> str:
    parts = [f"{counts['documents']} documents are indexed"]
    if counts["leftOut"]:
        parts.append(f"{counts['leftOut']} are too long and left out")
    if is_cut:
        parts.append("there are more files than are looked at")
    if unreadable:
        parts.append(f"{len(unreadable)} cannot be read, the first is {unreadable[0]}")
    return "; ".join(parts)
