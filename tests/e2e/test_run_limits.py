"""The limits of a run, each on both sides, made small by `--config`: time, model calls, tool calls, hooks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.agents.loop import LIMIT_TEXT
from sidecar.agents.tool_batch import SURPLUS_TEXT
from tests.bench.fake_model import TC, F, FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError
from tests.bench.limited import limited

Start = Callable[..., Any]


async def test_a_run_that_names_no_time_ends_at_the_configured_one(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, run_timeout_ms=300), env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: [T("a"), Stall(0.6), T("b")])

    cut = await session.run("go")
    whole = await session.run("go", timeoutMs=20_000)

    assert (cut["status"], cut["stopReason"]) == ("cancelled", "timeout")
    assert (whole["status"], whole["text"]) == ("completed", "ab")


async def test_the_model_is_called_as_often_as_configured_and_once_more_without_tools(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, max_turns=2), env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["done"] if request.tool_results else [TC(0, "c1", "look", "{}")])
    assert (await session.run("go"))["stopReason"] == "endTurn"

    calls = len(model.requests)
    model.otherwise(lambda _: [TC(0, f"c{len(model.requests)}", "look", "{}")])
    result = await session.run("go on for ever")

    assert (result["status"], result["stopReason"], result["text"]) == ("completed", "maxTurns", LIMIT_TEXT)
    assert len(model.requests) - calls == 3


async def test_calls_over_the_number_of_one_answer_get_an_error_result(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, max_tool_calls=2), env=model.environment)
    session = await host.create_session()
    model.calls("look", {}, "see", {}, "watch", {})
    model.says("done")

    run = session.start("go")

    assert (await run.result())["text"] == "done"
    not_found = [f'Error: Requested function "{name}" not found.' for name in ("look", "see")]
    assert [*model.last_request.tool_results.values()] == [*not_found, SURPLUS_TEXT.format(most=2)]
    assert [event["data"]["status"] for event in run.events("tool.completed")] == ["failed"] * 3


async def test_truncated_calls_are_borne_as_often_as_configured(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, truncated_call_rounds=1), env=model.environment)
    session = await host.create_session()
    model.says(TC(0, "c1", "write", '{"a'), F("length"))
    model.says("shorter now")
    assert (await session.run("go"))["text"] == "shorter now"

    model.says(TC(0, "c2", "write", '{"a'), F("length"))
    model.says(TC(0, "c3", "write", '{"a'), F("length"))
    with pytest.raises(RpcError) as failure:
        await session.run("go")

    assert failure.value.kind == "modelBadStream"


HEAD = "class Slow(ContextProvider):\n    retrieves = {}\n"
SLOW = """
import asyncio
from providers.api.provider import ContextProvider, ProviderConfig
class Config(ProviderConfig):
    seconds: float
class Slow(ContextProvider):
    config_type = Config
    async def before_run(self, *, agent, session, context, state):
        await asyncio.sleep(self.config.seconds)
"""
AGENTS = """
[agents.{name}]
model = "scripted:echo"
[[agents.{name}.context_providers]]
type = "slow:Slow"
config = {{ seconds = {seconds} }}
"""


@pytest.mark.parametrize(("limit", "retrieves"), [("provider_timeout_ms", False), ("retrieval_timeout_ms", True)])
async def test_a_hook_that_takes_longer_than_configured_fails_the_run(
    start_host: Start, tmp_path: Path, limit: str, retrieves: bool
) -> None:
    """Hooks that search have a shorter time of their own, and the other limit does not touch them."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "slow.py").write_text(SLOW.replace("class Slow(ContextProvider):", HEAD.format(retrieves)))
    agents = AGENTS.format(name="quick", seconds=0) + AGENTS.format(name="slow", seconds=60)
    config = tmp_path / "slow.toml"
    config.write_text(f'plugins = ["plugins"]\n[limits]\n{limit} = 200\n{agents}')
    host: FakeHost = await start_host(args=("--config", str(config)))
    quick, slow = [await host.create_session(agent=name) for name in ("quick", "slow")]

    assert (await quick.run("hi"))["text"] == "hi"
    with pytest.raises(RpcError, match="longer than 200 ms") as failure:
        await slow.run("hi")

    assert (failure.value.kind, failure.value.data["phase"]) == ("providerFailed", "beforeRun")
