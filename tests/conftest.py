"""Fixtures of every kind of test. The bench itself is in `tests/bench`."""

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.bench import clients_run
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost
from tests.bench.small_disk import SmallDisk

# Sidecars are started by the hundred. Where a machine forbids bytecode, each would compile the whole program anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What the user of this machine has configured, or has decided about tools for good, is none of the tests' business.
_USERS_FOLDER = tempfile.TemporaryDirectory(prefix="agent-sidecar-config-")
os.environ["XDG_CONFIG_HOME"] = _USERS_FOLDER.name


class _ClientsRun:
    """Gathers which clients were run, from all workers; `AGENT_SIDECAR_REWRITE_CLIENTS=1` puts them into the README."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._versions.update(clients_run.noted(report.user_properties))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._versions:
            shown = ", ".join(f"{name} {version}" for name, version in sorted(self._versions.items()))
            terminalreporter.write_line(f"clients run: {shown}")
        if os.environ.get("AGENT_SIDECAR_REWRITE_CLIENTS") == "1":
            text = clients_run.README.read_text(encoding="utf-8")
            clients_run.README.write_text(clients_run.written(text, self._versions), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Only where the reports of all workers come together."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_ClientsRun())


SCALE = float(os.environ.get("AGENT_SIDECAR_TEST_SCALE", "1"))


def scaled(count: int) -> int:
    """A repeat count, scaled by `AGENT_SIDECAR_TEST_SCALE`."""
    return max(1, round(count * SCALE))


# The suite of a commit is the same each time; the longer ones look for what it has missed, and print how to repeat it.
settings.register_profile("scaled", max_examples=scaled(100), derandomize=SCALE <= 1, print_blob=True, deadline=None)
settings.load_profile("scaled")


@pytest.fixture
async def start_host() -> AsyncIterator[Callable[..., Any]]:
    """Starts sidecars; all of them end with the test."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> FakeHost:
            return await stack.enter_async_context(FakeHost(**options))

        yield start


@pytest.fixture
async def host(start_host: Callable[..., Any]) -> FakeHost:
    """A sidecar with a store in memory."""
    return await start_host()


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    """A model endpoint over HTTP."""
    async with FakeModel() as endpoint:
        yield endpoint


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store in a file of its own."""
    return f"sqlite:{tmp_path / 'sessions.db'}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A tmpfs; skips where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)
