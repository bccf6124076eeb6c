"""The folder in which one conversation is played: the scripts, and the executable that stands in for the sidecar."""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .conversations import SCRIPTS

Weather = Literal["calm", "rough"]
VARIABLE: Final = "AGENT_SIDECAR"
"""Names the executable to the driver."""


@dataclass(frozen=True)
class Place:
    """A folder of one conversation's own."""

    root: Path

    @property
    def work(self) -> Path:
        """Where the sidecar works."""
        return self.root / "work"

    @property
    def wire(self) -> Path:
        """The socket on which the relay tells what passes."""
        return self.root / "wire"

    @property
    def executable(self) -> Path:
        """What the client starts in place of `agent-sidecar`."""
        return self.root / "agent-sidecar"


@contextmanager
def place(weather: Weather) -> Generator[Place, None, None]:
    """A new place, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="sidecar-", ignore_cleanup_errors=True) as name:
        made = Place(Path(name).resolve())
        shutil.copytree(SCRIPTS, made.work / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (made.root / "home").mkdir()
        relay = [sys.executable, "-I", "-m", f"{__package__}.relay", str(made.root), weather]
        made.executable.write_text(f'#!/bin/sh\nexec {shlex.join(relay)} "$@"\n', encoding="utf-8")
        made.executable.chmod(0o755)
        yield made
