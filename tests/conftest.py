"""Fixtures of every kind of test. The bench itself is in `tests/bench`."""

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost

# Sidecars are started by the hundred. Where a machine forbids bytecode, each would compile the whole program anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What the user of this machine has configured, or has decided about tools for good, is none of the tests' business.
_USERS_FOLDER = tempfile.TemporaryDirectory(prefix="agent-sidecar-config-")
os.environ["XDG_CONFIG_HOME"] = _USERS_FOLDER.name

SCALE = float(os.environ.get("AGENT_SIDECAR_TEST_SCALE", "1"))


def scaled(count: int) -> int:
    """A repeat count, scaled by `AGENT_SIDECAR_TEST_SCALE`."""
    return max(1, round(count * SCALE))


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
