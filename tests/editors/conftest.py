"""What every foreign client is given: a sidecar in a workspace of its own, whose model says what a file tells it to."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

STALLS = "tell me a story"
"""The input whose answer begins with `BEGINNING` and then never ends."""
BEGINNING = "Once upon a time"
LOOKS_UP = "look it up"
"""The input that has the tool `lookup` called with `{"key": "饺子"}`."""

_MODEL = f"""
[[reply]]
when = "{STALLS}"
text = ["Once upon", " a time"]
stall = true

[[reply]]
when_tool = "lookup"
text = "It says: {{result}}"

[[reply]]
when = "{LOOKS_UP}"
calls = [{{ name = "lookup", arguments = {{ key = "饺子" }} }}]

[[reply]]
when = "."
text = ["You said: ", "{{input}}"]
"""


@dataclass(frozen=True)
class Workspace:
    """A folder with files, and how a sidecar is started in it. All of its processes share one store."""

    root: Path
    environment: dict[str, str]

    @property
    def command(self) -> list[str]:
        """As an editor's settings say it: what to configure, the user's file holds."""
        return [str(Path(sys.executable).with_name("agent-sidecar")), "serve"]

    async def run(self, *program: str, output: IO[bytes] | None = None) -> list[dict[str, Any]]:
        """Run a client to its end: what it printed, one JSON object a line; or into a file. It must end well."""
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output or asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.root,
            env=self.environment,
        )
        try:
            async with asyncio.timeout(60):
                printed, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, f"{errors.decode()}\n{(printed or b'').decode()}"
        return [json.loads(line) for line in (printed or b"").splitlines()]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The user's file names the model and the store, so that any client finds both."""
    config = tmp_path / "config"
    root = tmp_path / "a workspace"
    (config / "agent-sidecar").mkdir(parents=True)
    (root / ".git").mkdir(parents=True)
    (root / "notes.md").write_text("as it was saved\n")
    (tmp_path / "model.toml").write_text(_MODEL)
    (config / "agent-sidecar" / "sidecar.toml").write_text(
        f'default_model = "scripted:{tmp_path / "model.toml"}"\n[store]\npath = "sqlite:{tmp_path / "sessions.db"}"\n'
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHONPATH"))}
    own = {"XDG_CONFIG_HOME": str(config), "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return Workspace(root, {**kept, **own, "PATH": path})


def npm_version(package: Path) -> str:
    """The version of an installed package of npm's."""
    return json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]


def steps(said: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client's program said of each of its steps."""
    return {line["step"]: line["value"] for line in said if "step" in line}
