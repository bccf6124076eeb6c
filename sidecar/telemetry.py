"""The log, on stderr or in a file: one line a record, no bodies, no secrets. Foreign exceptions are named here only."""

import asyncio
import logging
import os
import platform
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from protocol.version import VERSION

from .errors import new_error_id

LOGGER: Final = logging.getLogger("agent-sidecar")

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_FORMAT_IN_FILE: Final = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def configure_logging(level: str, file: str = "") -> None:
    """Send our records to stderr, or to a file, and keep other libraries at warnings: some log whole bodies.

    Raises:
        OSError: the file cannot be opened; the log stays where it was.
    """
    handler = LogFile(Path(os.path.expanduser(file)).absolute()) if file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT_IN_FILE if file else _FORMAT))
    root = logging.getLogger()
    for earlier in root.handlers:
        if isinstance(earlier, LogFile):
            earlier.close()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level.upper())
    _introduce(handler)


def cannot_log_to(file: str, error: OSError) -> str:
    """Why a log file cannot be opened, and what to do."""
    path = Path(os.path.expanduser(file)).absolute()
    if isinstance(error, FileNotFoundError):
        return f"the log file {path} has no folder: create {path.parent}"
    return f"the log file {path} cannot be opened ({error.strerror})"


class LogFile(logging.Handler):
    """Appends to a file that other processes may append to, too: each record is one write.

    A file that was moved or removed is made anew. What cannot be written is lost, and said once, on stderr.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, 0600 where it is new.

        Raises:
            OSError: it cannot be.
        """
        super().__init__()
        self._path = path
        self._told = False
        self._descriptor = os.open(path, _APPEND, 0o600)
        self._in_line = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. Never fails."""
        data = "\n    ".join(self.format(record).splitlines()).encode(errors="replace") + b"\n"
        if self._in_line:
            data = b"\n" + data
        try:
            self._follow()
            written = os.write(self._descriptor, data)
            self._in_line = written < len(data)
            if self._in_line:  # what is left of the disk
                os.write(self._descriptor, data[written:])
                self._in_line = False
        except OSError as error:
            self._tell(error)

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        os.close(self._descriptor)

    def _follow(self) -> None:
        """Open the file anew where it is no longer the one of that name."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(found, os.fstat(self._descriptor)):
            descriptor = os.open(self._path, _APPEND, 0o600)
            os.close(self._descriptor)
            self._descriptor = descriptor

    def _tell(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            with suppress(OSError):
                sys.stderr.write(f"agent-sidecar: {self._path}: {error.strerror}; lines of the log are lost\n")


def _introduce(handler: logging.Handler) -> None:
    """Say who writes: in a file always, since several processes may share it; on stderr to those who want to know."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    text = f"agent-sidecar {VERSION}, process {os.getpid()}, Python {platform.python_version()}, {system}"
    if isinstance(handler, LogFile):
        handler.handle(logging.LogRecord(LOGGER.name, logging.INFO, __file__, 0, text, None, None))
    else:
        LOGGER.info(text)


def log_strays(loop: asyncio.AbstractEventLoop) -> None:
    """Name what fails in tasks and threads that nobody waits for; by themselves they would print its text, too."""

    def in_task(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error: BaseException | None = context.get("exception")
        if error is None:
            LOGGER.warning("%s", context.get("message"))
        else:
            log_failure("a task that nobody waits for", error, new_error_id())

    def in_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None:
            log_failure("a thread that nobody waits for", failed.exc_value, new_error_id())

    loop.set_exception_handler(in_task)
    threading.excepthook = in_thread


def log_failure(what: str, error: BaseException, error_id: str) -> None:
    """Write down where something failed, without the exception's text, which may repeat what a user said."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames[-6:]))
    LOGGER.warning("%s: %s errorId=%s at %s", what, type(error).__name__, error_id, where or "?")
