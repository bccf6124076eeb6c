"""Runs the command line as a user would, in an environment that holds nothing of this machine's user."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-I", "-m", "sidecar"]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Cli:
    """The command `agent-sidecar` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f"sqlite:{folder / 'sessions.db'}"

    def script(self, text: str) -> str:
        """Write a script for the scripted model; gives the model's name."""
        path = self.folder / "script.toml"
        path.write_text(text, encoding="utf-8")
        return f"scripted:{path}"

    @property
    def environment(self) -> dict[str, str]:
        """This process's, without what belongs to its user."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "XDG_", "AGENT_"))}
        return {**kept, "HOME": str(self.folder)}

    async def start(self, *arguments: str, **env: str) -> Process:
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self.folder,
            env={**self.environment, **env},
        )

    async def __call__(self, *arguments: str, stdin: str = "", **env: str) -> Outcome:
        process = await self.start(*arguments, **env)
        out, err = await process.communicate(stdin.encode())
        return Outcome(process.returncode or 0, out.decode(), err.decode())
