"""The log on stderr: one line a record, no bodies, no secrets. Exceptions of others are named here and nowhere else."""

import asyncio
import logging
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, Final

from .errors import new_error_id

LOGGER: Final = logging.getLogger("agent-sidecar")


def configure_logging(level: str, file: str = "") -> None:
    """Send our records to stderr, or to a file, and keep other libraries at warnings: some log whole bodies."""
    handler = logging.StreamHandler(sys.stderr) if not file else logging.FileHandler(Path(file).expanduser())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level.upper())


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
