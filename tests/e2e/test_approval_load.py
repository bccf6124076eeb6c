"""A thousand approvals that wait on a hundred sessions: they cost bounded memory, and leave nothing behind."""

import asyncio
from typing import Any

from tests.bench.fake_model import DONE, TC, F, FakeModel, T
from tests.bench.gated import APPROVALS, TOOLS
from tests.bench.host import FakeHost, HostSession
from tests.bench.tool_plugins import tool_plugins

SESSIONS, CALLS = 100, 10
COUNTING = """
    @tool
    async def tasks() -> int:
        '''Count what the event loop is at.'''
        return len(asyncio.all_tasks())
    """
MOST_BYTES = 160 << 20
"""More than five times what a thousand waiting approvals were seen to take."""


async def test_a_thousand_waiting_approvals_cost_bounded_memory_and_leave_no_task(
    start_host: Any, model: FakeModel, tmp_path: Any
) -> None:
    plugins = tool_plugins(tmp_path, module=COUNTING, tools=("tasks",))
    host: FakeHost = await start_host(args=plugins.args, env=model.environment, initialize=APPROVALS)
    sessions = [await host.create_session(tools=TOOLS) for _ in range(SESSIONS)]
    before = await tasks(sessions[0], model)
    memory = (await host.request("getState"))["server"]["rssBytes"]
    model.otherwise(
        lambda _: [*(TC(n, f"c{n}", "delete", f'{{"a": {n}}}') for n in range(CALLS)), F("tool_calls"), DONE]
    )

    runs = [session.start("go") for session in sessions]
    await host.until(lambda: len(host.asked("host/requestApproval")) == SESSIONS * CALLS)

    grown = (await host.request("getState"))["server"]["rssBytes"] - memory
    assert grown < MOST_BYTES
    await asyncio.gather(*(session.cancel() for session in sessions))
    assert {(await run.result())["status"] for run in runs} == {"cancelled"}
    assert await tasks(sessions[0], model) == before


async def tasks(session: HostSession, model: FakeModel) -> str:
    """How many tasks the sidecar has while a tool asks."""
    model.says(TC(0, "c0", "tasks", "{}"), F("tool_calls"))
    model.says(T("so many"), F())
    await session.run("count")
    (result,) = session.events("tool.completed")[-1:]
    return result["data"]["content"][0]["text"]
