"""Where the benchmarks run: a temporary folder with its own configuration, and the commands that they start there."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from .child import Child
from .raw_echo import frame

Durability = Literal["full", "normal", "memory"]

_NOT_INHERITED: Final = ("PYTHONPATH", "OPENAI_API_KEY", "OPENAI_BASE_URL", "AGENT_SIDECAR_STORE", "AGENT_SIDECAR_LOG")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that no configuration of the user's reaches."""

    folder: Path
    quick: bool
    """Fewer repetitions."""

    def times(self, full: int, quick: int) -> int:
        """How often something is repeated."""
        return quick if self.quick else full

    def python(self, *arguments: str) -> Child:
        """The interpreter that also runs the sidecar, isolated as its console script is."""
        return self._start((sys.executable, "-I", *arguments))

    def echo(self) -> Child:
        """The raw framed echo server."""
        return self.python(str(Path(__file__).with_name("raw_echo.py")))

    def sink(self) -> Child:
        """The raw server for large requests."""
        return self.python(str(Path(__file__).with_name("raw_sink.py")))

    def sidecar(self, durability: Durability = "memory") -> Child:
        """`agent-sidecar serve`, not yet initialized, on a store of its own."""
        arguments = ["--store", "memory"]
        if durability != "memory":
            place = self.folder / f"{durability}-{os.urandom(4).hex()}"
            place.with_suffix(".toml").write_text(
                f'[store]\npath = "sqlite:{place}.db"\ndurability = "{durability}"\n', encoding="utf-8"
            )
            arguments = ["--config", f"{place}.toml"]
        return self._start((*_sidecar_command(), "serve", *arguments))

    def ready_sidecar(self, durability: Durability = "memory") -> Child:
        """The same, after `initialize` and with everything imported."""
        child = self.sidecar(durability)
        child.ask(request(0, "initialize"))
        child.ask(request(1, "getState", include=[]))
        return child

    def _start(self, command: Sequence[str]) -> Child:
        env = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        env |= {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)}
        return Child(command, cwd=str(self.folder), env=env)


def request(request_id: int, method: str, **params: Any) -> bytes:
    """A request's body."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def frames(*bodies: bytes) -> bytes:
    """Several bodies, to be written at once."""
    return b"".join(map(frame, bodies))


def _sidecar_command() -> tuple[str, ...]:
    script = Path(sys.executable).with_name("agent-sidecar")
    return (str(script),) if script.exists() else (sys.executable, "-I", "-m", "sidecar")
