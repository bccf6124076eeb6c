"""An editor that does not read for a while misses nothing, and can cancel meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bench.acp_client import Acp, prompt
from tests.bench.fake_model import DONE, F, FakeModel, Reply, Stall, T
from tests.bench.model_script import Piece
from tests.bench.waiting import eventually
from tests.e2e.cli_process import Cli

WORDS = [f"{number:<16384}" for number in range(500)]
"""8 MiB: more than the pipes between model and editor hold."""


class Counted(list[Piece]):
    """A script that knows how much of it was sent."""

    sent = 0

    def __iter__(self):
        for piece in super().__iter__():
            self.sent += 1
            yield piece


@pytest.fixture
async def acp(tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Acp]:
    """An agent whose model is an endpoint."""
    monkeypatch.setattr(Cli, "environment", {**Cli(tmp_path).environment, **model.environment})
    async with Acp(Cli(tmp_path), "--store", "memory", check=False) as agent:
        await agent.initialize()
        yield agent


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_editor_that_reads_late_gets_everything(acp: Acp, model: FakeModel, *, cancelled: bool) -> None:
    script = Counted([*map(T, WORDS), Stall()] if cancelled else [*map(T, WORDS), F("stop"), DONE])
    model.replies(Reply(script))
    session = await acp.new_session()

    acp.pause_reading()
    run = acp.begin("session/prompt", prompt(session, "go"))
    await eventually(lambda: script.sent > len(WORDS) // 2)
    if cancelled:
        acp.notify("session/cancel", {"sessionId": session})
    acp.resume_reading()

    whole = "".join(WORDS)
    assert (await run)["stopReason"] == ("cancelled" if cancelled else "end_turn")
    assert whole.startswith(acp.text())
    assert cancelled or acp.text() == whole
