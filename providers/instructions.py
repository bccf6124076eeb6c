"""Puts a project's AGENTS.md files into the instructions. It reads files of the workspace and keeps no state."""

import asyncio
import math
import time
from pathlib import Path
from typing import Final, cast

from pydantic import Field, field_validator

from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.api.session import Session, State

from .project_folders import project_folders

MAX_FILE_BYTES: Final = 64 * 1024
"""Of each file; what is longer is cut, and says so."""


READ_AGAIN_AFTER_S: Final = 1.0
"""An edit counts for runs that begin this much later. Reading is a walk through the disk in another thread."""


class InstructionsConfig(ProviderConfig):
    """Which files to look for."""

    files: tuple[str, ...] = Field(default=("AGENTS.md",), min_length=1, max_length=8)
    """Plain names, looked for in each folder from the repository's root down to the session's `cwd`."""

    @field_validator("files")
    @classmethod
    def _plain_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not name or name in {".", ".."} or "/" in name or "\\" in name or "\0" in name:
                raise ValueError(f"{name!r} is no plain file name")
        return names


class InstructionsProvider(ContextProvider):
    """Adds the project's own instructions, outermost folder first.

    The walk goes from the session's `cwd` up to the folder that holds `.git`, never above it nor above the home
    folder; outside a repository only `cwd` itself counts. A file that a link leads out of that root is passed over.
    """

    config_type = InstructionsConfig

    def __init__(
        self, source_id: str, config: ProviderConfig | None = None, surroundings: Surroundings | None = None
    ) -> None:
        super().__init__(source_id, config, surroundings)
        self._texts: list[str] = []
        self._read_at = -math.inf

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add them. They are read again for each run, or once for a burst of runs."""
        if self.surroundings.cwd is not None and time.monotonic() - self._read_at > READ_AGAIN_AFTER_S:
            names = cast("InstructionsConfig", self.config).files
            self._texts = await asyncio.to_thread(read_all, Path(self.surroundings.cwd), names)
            self._read_at = time.monotonic()
        context.extend_instructions(self, self._texts)


def read_all(cwd: Path, names: tuple[str, ...]) -> list[str]:
    """The texts of the files that apply to a folder, outermost first."""
    try:
        folders = project_folders(cwd.resolve(strict=True))
    except (OSError, RuntimeError):  # RuntimeError: links in a circle, before Python 3.13
        return []
    texts = (_read(folder / name, root=folders[0]) for folder in folders for name in names)
    return [text for text in texts if text is not None]


def _read(path: Path, *, root: Path) -> str | None:
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root) or not real.is_file():
            return None
        with real.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, RuntimeError):
        return None
    text = data[:MAX_FILE_BYTES].decode("utf-8-sig", errors="replace").replace("\0", "\ufffd").strip()
    if len(data) > MAX_FILE_BYTES:
        text = text.rstrip("\ufffd") + f"\n[{path.name} is cut after {MAX_FILE_BYTES // 1024} KiB]"
    return f"# {path.relative_to(root).as_posix()}\n\n{text}" if text else None
