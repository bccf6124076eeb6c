"""`resolveRequest` to a run that waits: it is acknowledged when what came of it is stored, and not before."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.gated import ALLOW, APPROVALS, TOOLS
from tests.bench.host import FakeHost, HostRun, HostSession, RpcError
from tests.bench.plugin_files import write_plugin
from tests.bench.small_disk import SmallDisk
from tests.bench.wanted_calls import wants
from tests.bench.wire import Json

LONG = "y" * 100_000
SLOW_GUARD = """
import asyncio

from providers.api.middleware import FunctionMiddleware


class Guard(FunctionMiddleware):
    async def process(self, context, call_next):
        await call_next()
        for _ in range(200):
            await asyncio.sleep(0)
"""


async def waiting(session: HostSession, model: FakeModel, tool: str, argument: Any, method: str) -> tuple[HostRun, str]:
    """A run that waits for its host, and the id of what it waits for."""
    wants(model, (tool, {"a": argument}))
    model.says(T("done"), F())
    run = session.start("go")
    (asked,) = await session.host.until(lambda: session.host.asked(method))
    return run, asked["params"]["requestId"]


def order(host: FakeHost, *wanted: str) -> list[str]:
    """In which order these came: types of events, or `answer` to a `resolveRequest`."""
    came = (
        message["params"]["type"]
        if message.get("method") == "run/event"
        else "answer"
        if "status" in (message.get("result") or {}) and "lastSeq" not in message["result"]
        else ""
        for message in host.messages
    )
    return [what for what in came if what in wanted]


async def test_a_tool_s_result_is_acknowledged_after_the_end_of_its_call(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    write_plugin(tmp_path / "plugins", "plug_guard", SLOW_GUARD)
    config = tmp_path / "sidecar.toml"
    config.write_text('plugins = ["plugins"]\nmiddleware = ["plug_guard:Guard"]\n')
    host = await start_host(env=model.environment, args=("--config", str(config)))
    session = await host.create_session(sessionId="s", tools=TOOLS, agent={"middleware": [{"name": "Guard"}]})
    run, request_id = await waiting(session, model, "look", 1, "host/callTool")

    resolved = await host.request("resolveRequest", {"requestId": request_id, "result": {"content": "seen"}})

    assert resolved["status"] == "resolved"
    assert order(host, "tool.completed", "request.resolved", "answer") == [
        "request.resolved",
        "tool.completed",
        "answer",
    ]
    assert (await run.result())["text"] == "done"


@pytest.mark.parametrize(
    ("tool", "argument", "method", "answer"),
    [
        ("look", 1, "host/callTool", {"content": LONG}),
        ("delete", LONG, "host/requestApproval", {"outcome": ALLOW}),
    ],
)
async def test_what_cannot_be_stored_is_not_acknowledged(
    start_host: Any, model: FakeModel, small_disk: SmallDisk, tool: str, argument: Any, method: str, answer: Json
) -> None:
    host = await start_host(store=small_disk.store, env=model.environment, initialize=APPROVALS)
    session = await host.create_session(sessionId="s", tools=TOOLS)
    run, request_id = await waiting(session, model, tool, argument, method)
    small_disk.fill()

    with pytest.raises(RpcError) as refused:
        await host.request("resolveRequest", {"requestId": request_id, "result": answer})

    assert (refused.value.code, refused.value.kind) == (4042, "storageFailed")
    assert (await run.result())["status"] == "completed"
