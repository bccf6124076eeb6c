"""The limits around a tool call, each on both sides, made small by `--config`: its time, its result, its middleware."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel, T
from tests.bench.host import FakeHost
from tests.bench.tool_plugins import tool_plugins

GUARD = """
import asyncio

from providers.api.middleware import function_middleware


@function_middleware
async def slow_guard(context, call_next):
    await asyncio.sleep(context.kwargs.get("guardSeconds", 0))
    await call_next()
"""


async def result_of(
    start_host: Any, model: FakeModel, folder: Path, limits: str, name: str, arguments: dict[str, Any], **options: Any
) -> str:
    """What the model was told of one call under these limits."""
    run = options.pop("run", {})
    plugins = tool_plugins(folder, **{**options, "config": f"{options.get('config', '')}\n[limits]\n{limits}\n"})
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    session = await host.create_session()
    model.says(TC(0, "c1", name, json.dumps(arguments)), F("tool_calls"))
    model.says(T("done"), F())
    assert (await session.run("go", **run))["text"] == "done"
    return model.last_request.tool_results["c1"]


@pytest.mark.parametrize(("seconds", "ends"), [(0.0, True), (30.0, False)])
async def test_a_tool_has_its_time(
    start_host: Any, model: FakeModel, tmp_path: Path, seconds: float, ends: bool
) -> None:
    arguments = {"dish": "soup", "seconds": seconds}

    told = await result_of(start_host, model, tmp_path, "tool_timeout_ms = 2000", "place_order", arguments)

    assert (told == "ordered soup") == ends
    assert told.startswith("Error: ") != ends


@pytest.mark.parametrize("megabytes", [1, 2])
async def test_a_result_over_its_limit_is_cut_with_a_note(
    start_host: Any, model: FakeModel, tmp_path: Path, megabytes: int
) -> None:
    most = 1 << 20

    told = await result_of(
        start_host, model, tmp_path, f"tool_result_bytes = {most}", "flood", {"megabytes": megabytes}
    )

    assert told[:most] == "x" * most
    assert ("left out" in told) == (megabytes == 2)


@pytest.mark.parametrize(("seconds", "runs"), [(0.0, True), (30.0, False)])
async def test_middleware_has_a_time_of_its_own_and_the_tool_s_is_not_counted(
    start_host: Any, model: FakeModel, tmp_path: Path, seconds: float, runs: bool
) -> None:
    """The tool takes longer than the middleware may; a middleware that does keeps the tool from running."""
    told = await result_of(
        start_host,
        model,
        tmp_path,
        "middleware_timeout_ms = 500",
        "place_order",
        {"dish": "soup", "seconds": 1.0},
        module=GUARD,
        config='middleware = ["bench_tools:slow_guard"]',
        agent='middleware = [{ name = "slow_guard" }]',
        run={"functionInvocationKwargs": {"guardSeconds": seconds}},
    )

    log = tmp_path / "plugins" / "effects.log"
    assert log.exists() == runs
    assert told == ("ordered soup" if runs else "Error: The middleware around this call took too long; it was not run.")
