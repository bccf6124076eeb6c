"""The sidecar beside what else there is to build on: pygls, the `mcp` and ACP packages, Microsoft's agent-framework."""

import sys

from benchmarks.report import Figure
from benchmarks.workspace import Workspace

from . import in_process, over_pipes
from .environment import versions


def measure(workspace: Workspace) -> list[Figure]:
    """All of them, in one run."""
    sys.stderr.write(f"  beside {versions()}\n")
    return [*over_pipes.measure(workspace), *in_process.measure(workspace)]
