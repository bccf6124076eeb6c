"""Finds and reads the documents below a folder, and no link leads it out. POSIX only; contents are not its affair.

Everything is opened from the descriptor of the folder above it: what is looked at is what is used.
"""

import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from providers.api.errors import ProviderError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_DEPTH: Final = 32
"""Folders below each other; what lies deeper is not seen."""
MAX_ENTRIES: Final = 200_000
"""Files and folders that one walk looks at."""
MAX_IGNORE_BYTES: Final = 64 << 10
"""Of one `.gitignore`; a longer one is not read."""
MAX_WILDCARDS: Final = 2
"""Of `*` in a line of a `.gitignore`, and of all with `**` one more; other lines are passed over."""
PASSED_OVER: Final = frozenset({"__pycache__", "node_modules"})
"""Folders that are passed over as hidden ones are."""

_STARS: Final = re.compile(r"\*+")
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | _NO_LINK


class FolderUnusable(ProviderError):
    """The folder of the documents is not there, or cannot be read. The text names no more than the entry does."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What shows that a file has not changed."""

    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Of a file's status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the documents are."""

    base: Path
    """Absolute. Links on the way to it, and it itself, are followed."""
    below: tuple[str, ...] = ()
    """Steps from there on, of which none may be a link."""

    @property
    def shown(self) -> str:
        """What messages call it: as the entry does, as far as that says more than a machine's own path."""
        return "/".join(self.below) or self.base.name


@dataclass(frozen=True, slots=True)
class Rules:
    """Which files count. Patterns are those of `.gitignore`, from the folder on."""

    include: tuple[str, ...] | None
    """`None`: whatever there is a reader for."""
    exclude: tuple[str, ...]
    max_files: int


_Ignored = list[tuple[str, "GitIgnoreSpec"]]
"""What the `.gitignore` files on the way down say: the folder of each, and its patterns."""


@dataclass(slots=True)
class Walk:
    """What a walk has found."""

    files: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """By path from the folder on, with `/`, in the order of their names."""
    is_cut: bool = False
    """Whether there is more than may be looked at."""
    unreadable: int = 0
    """Folders that could not be opened."""


class Walker:
    """Looks through one folder again and again."""

    def __init__(self, place: Place, rules: Rules, *, is_readable: Callable[[str], bool]) -> None:
        self._place = place
        self._rules = rules
        self._is_readable = is_readable
        self._include = None if rules.include is None else patterns(rules.include)
        self._exclude = patterns(rules.exclude) if rules.exclude else None

    def walk(self) -> Walk:
        """The documents as they are now.

        Raises:
            FolderUnusable: the folder cannot be opened.
        """
        walk = Walk()
        with self._opened() as root:
            self._enter(root, "", [], walk, [MAX_ENTRIES])
        return walk

    def read(self, path: str, most: int) -> tuple[bytes, Stamp] | None:
        """A file and its stamp; `None` if it has gone, is not to be read, is no file (any more) or too long.

        Raises:
            FolderUnusable: the folder cannot be opened.
        """
        *folders, name = steps = path.split("/")
        if not {"", ".", ".."}.isdisjoint(steps):
            return None
        with self._opened() as root:
            try:
                with _below(root, folders) as folder:
                    return _contents(folder, name, most)
            except OSError:
                return None

    @contextmanager
    def _opened(self) -> Generator[int]:
        try:
            base = os.open(self._place.base, _FOLDER)
        except OSError as error:
            raise FolderUnusable(f"the folder {self._place.shown!r} cannot be opened: {error.strerror}") from None
        try:
            with _below(base, self._place.below) as root:
                yield root
        except OSError as error:
            raise FolderUnusable(f"the folder {self._place.shown!r} cannot be opened: {error.strerror}") from None
        finally:
            os.close(base)

    def _enter(self, folder: int, path: str, ignored: "_Ignored", walk: Walk, left: list[int]) -> None:
        own = _ignore_file(folder)
        rules = [*ignored, (path, own)] if own is not None else ignored
        for name, is_folder, stamp in _entries(folder):
            left[0] -= 1
            below = f"{path}{name}"
            if left[0] < 0:
                walk.is_cut = True
            elif is_folder:
                self._enter_below(folder, name, f"{below}/", rules, walk, left)
            elif stamp is not None and self._counts(below, rules):
                if len(walk.files) < self._rules.max_files:
                    walk.files[below] = stamp
                else:
                    walk.is_cut = True
            if walk.is_cut:
                return

    def _enter_below(
        self,
        folder: int,
        name: str,
        path: str,
        rules: "_Ignored",
        walk: Walk,
        left: list[int],
    ) -> None:
        if name in PASSED_OVER or path.count("/") > MAX_DEPTH or self._is_left_out(path, rules):
            return
        try:
            inner = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
        except OSError:
            walk.unreadable += 1
            return
        try:
            self._enter(inner, path, rules, walk, left)
        finally:
            os.close(inner)

    def _counts(self, path: str, rules: "_Ignored") -> bool:
        wanted = self._is_readable(path) if self._include is None else self._include.match_file(path)
        return wanted and not self._is_left_out(path, rules)

    def _is_left_out(self, path: str, rules: "_Ignored") -> bool:
        return (self._exclude is not None and self._exclude.match_file(path)) or _is_ignored(path, rules)


def patterns(lines: Sequence[str]) -> "GitIgnoreSpec":
    """Patterns as `.gitignore` has them.

    Raises:
        ValueError: one of them is none.
    """
    from pathspec import GitIgnoreSpec  # costs too much for those who search no folder

    return GitIgnoreSpec.from_lines(lines)


@contextmanager
def _below(folder: int, steps: Sequence[str]) -> Generator[int]:
    here = os.dup(folder)
    try:
        for step in steps:
            inner = os.open(step, _FOLDER | _NO_LINK, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _entries(folder: int) -> Iterator[tuple[str, bool, Stamp | None]]:
    """What counts in a folder, by name: folders and files; neither links nor hidden ones, nor names without UTF-8."""
    with suppress(OSError), os.scandir(folder) as scanned:
        for entry in sorted(scanned, key=lambda entry: entry.name):
            if entry.name.startswith(".") or not _is_text(entry.name):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name, True, None
                elif entry.is_file(follow_symlinks=False):
                    yield entry.name, False, Stamp.of(entry.stat(follow_symlinks=False))


def _contents(folder: int, name: str, most: int) -> tuple[bytes, Stamp] | None:
    """A regular file's bytes and stamp; `None` if it is none, or longer than `most`.

    Raises:
        OSError: it cannot be opened, as a link never can.
    """
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return None
        with open(file, "rb", closefd=False) as opened:
            data = opened.read(most + 1)
    finally:
        os.close(file)
    return (data, Stamp.of(status)) if len(data) <= most else None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ignore_file(folder: int) -> "GitIgnoreSpec | None":
    """The patterns of a folder's `.gitignore`; lines that are no patterns are passed over, as git does."""
    try:
        found = _contents(folder, ".gitignore", MAX_IGNORE_BYTES)
    except OSError:
        return None
    if found is None:
        return None
    good: list[str] = []
    for line in found[0].decode(errors="replace").splitlines():
        if not _is_quick(line):
            continue
        with suppress(ValueError):
            patterns([line])
            good.append(line)
    return patterns(good)


def _is_quick(line: str) -> bool:
    """Whether a stranger's pattern comes to an end soon: each wildcard multiplies what there is to try."""
    stars = [len(run) for run in _STARS.findall(line)]
    return len(stars) <= MAX_WILDCARDS + 1 and stars.count(1) <= MAX_WILDCARDS


def _is_ignored(path: str, rules: "_Ignored") -> bool:
    """Whether a `.gitignore` says so: the nearest one that says anything of the path."""
    for base, spec in reversed(rules):
        said = spec.check_file(path.removeprefix(base)).include
        if said is not None:
            return said
    return False
