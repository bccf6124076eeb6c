"""What a provider tells of its progress reaches the host, attributed, and within bounds."""

from typing import Any

from providers.api.context import MAX_PROGRESS
from providers.api.provider import ContextProvider
from sidecar.agents.pipeline import MOST_PROGRESS
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says


class Searching(ContextProvider):
    """Tells what it does."""

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.progress(self, "looking", {"hits": 2})
        context.progress("somebody else", "I am not this provider")

    async def after_run(self, *, context: Any, **_: Any) -> None:
        for _ in range(MOST_PROGRESS + 5):
            context.progress(self, "x" * (MAX_PROGRESS + 1))


async def test_progress_is_told_with_its_provider_and_phase_and_is_bounded() -> None:
    run = AgentRun(FakeClient(says("ok")), [Searching("search")])

    await run.say("?")

    first, *rest = run.sink.of("provider.progress")
    assert first == {"sourceId": "search", "phase": "beforeRun", "message": "looking", "data": {"hits": 2}}
    assert len(rest) == MOST_PROGRESS
    assert {len(piece["message"]) for piece in rest} == {MAX_PROGRESS}
    assert {piece["phase"] for piece in rest} == {"afterRun"}
