"""The virtual environment that the peers run in: made at its first use, in the user's cache, outside the checkout."""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from benchmarks.child import Child
from benchmarks.workspace import Workspace

_HERE: Final = Path(__file__).parent
_REQUIREMENTS: Final = _HERE / "requirements.txt"


def peer(workspace: Workspace, script: str) -> Child:
    """Start one of the scripts of this folder with its own packages.

    Raises:
        subprocess.CalledProcessError: the packages could not be installed.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return Child((str(_python()), "-I", str(_HERE / script)), cwd=str(workspace.folder), env=env)


def versions() -> str:
    """What is installed there, of what was asked for."""
    names = [line.split(">=")[0] for line in _REQUIREMENTS.read_text(encoding="utf-8").splitlines() if ">=" in line]
    script = f"from importlib.metadata import version; print(*(n + ' ' + version(n) for n in {names}), sep=', ')"
    return subprocess.run((_python(), "-I", "-c", script), check=True, capture_output=True, text=True).stdout.strip()


def _python() -> Path:
    """The environment's interpreter. Other requirements, or another Python, make another environment."""
    key = hashlib.sha256(_REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = user_cache_path("agent-sidecar") / "benchmarks" / f"peers-{key}"
    python, whole = folder / "bin" / "python", folder / "installed"
    if not whole.exists():
        sys.stderr.write(f"installing the peers into {folder} …\n")
        venv.create(folder, with_pip=True, clear=True)
        command = (python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", _REQUIREMENTS)
        subprocess.run(command, check=True, stdout=sys.stderr)
        whole.touch()
    return python
