"""Asks a person for lines: editing and a history by readline, where there is one. Knows nothing of what is typed."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final, Self

HISTORY_LINES: Final = 1_000
_PRIVATE: Final = 0o600


def history_file() -> Path:
    """Where the lines of earlier times are kept."""
    import platformdirs

    return Path(platformdirs.user_state_dir("agent-sidecar", appauthor=False)) / "chat-history"


class LineEditor:
    """Asks for lines while it is open; then adds them to the history. Without a terminal it reads stdin as it comes.

    Args:
        path: The history's file. Readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline = _readline() if self._interactive else None
        self._known = 0

    def __enter__(self) -> Self:
        if self._readline is not None:
            self._readline.clear_history()
            for line in read_lines(self._path)[-HISTORY_LINES:]:
                self._readline.add_history(line)
            self._known = self._readline.get_current_history_length()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._readline is not None:
            numbers = range(self._known + 1, self._readline.get_current_history_length() + 1)
            append_lines(self._path, (self._readline.get_history_item(number) for number in numbers))

    def ask(self, prompt: str) -> str | None:
        """The next line; None at the end (Ctrl-D).

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        try:
            return input(prompt if self._interactive else "")
        except EOFError:
            return None


def read_lines(path: Path) -> list[str]:
    """The lines that are kept, oldest first; none where they cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Add lines; where the file has grown to twice what is kept, keep the newest only. A full disk costs nothing."""
    new = [line for line in lines if line.strip()]
    if not new:
        return
    kept = read_lines(path)
    again = len(kept) >= 2 * HISTORY_LINES
    written = [*kept[-HISTORY_LINES:], *new] if again else new
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if again else os.O_APPEND), _PRIVATE)
        with open(file, "w", encoding="utf-8", errors="replace") as stream:
            path.chmod(_PRIVATE)
            stream.writelines(f"{line}\n" for line in written)
    except OSError:
        return


def _readline() -> ModuleType | None:
    """Imported for a person only: `input` edits lines from then on, and some terminals are sent a sequence."""
    try:
        import readline
    except ImportError:  # Windows, or a Python that was built without it
        return None
    return readline
