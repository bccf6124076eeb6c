"""The log on stderr: one line a record, no bodies, no secrets. Exceptions of others are named here and nowhere else."""

import logging
import sys
import traceback
from pathlib import Path
from typing import Final

LOGGER: Final = logging.getLogger("agent-sidecar")


def configure_logging(level: str, file: str = "") -> None:
    """Send our records to stderr, or to a file, and keep other libraries at warnings: some log whole bodies."""
    handler = logging.StreamHandler(sys.stderr) if not file else logging.FileHandler(Path(file).expanduser())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level.upper())


def log_failure(what: str, error: BaseException, error_id: str) -> None:
    """Write down where something failed, without the exception's text, which may repeat what a user said."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames[-6:]))
    LOGGER.warning("%s: %s errorId=%s at %s", what, type(error).__name__, error_id, where or "?")
