"""Gated calls of agents that are tools: asked live in the child's name, else denied, and never parked."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.agents.consent import NOBODY_TEXT, REJECTED_TEXT
from tests.bench.delegating import asks, cast, of, of_children, said
from tests.bench.fake_model import FakeModel
from tests.bench.gated import ALLOW, APPROVALS, REJECT, SILENT
from tests.bench.host import FakeHost, HostSession
from tests.bench.tool_plugins import ToolPlugins, tool_plugins
from tests.bench.wire import Json

AGENTS = """
[agents.boss]
instructions = "I am boss."
tools = [
  { type = "agent", agent = "helper" },
  { type = "agent", agent = "helper", name = "gated_helper", approval_mode = "always_require" },
]

[agents.helper]
description = "Orders dishes."
instructions = "I am helper."
tools = [{ type = "registered", name = "place_order", approval_mode = "always_require" }]
"""

Start = Callable[..., Awaitable[FakeHost]]


@pytest.fixture
def plugins(tmp_path: Path) -> ToolPlugins:
    return tool_plugins(tmp_path, config=AGENTS)


@pytest.fixture
def start(start_host: Any, model: FakeModel, store: str, plugins: ToolPlugins) -> Start:
    """Starts sidecars with a boss and its helper, whose tool is gated."""
    order = ("place_order", {"dish": "soup"})
    cast(model, boss=[asks(("helper", {"task": "soup!"})), said("served")], helper=[asks(order), said("done")])

    async def started(initialize: Json = APPROVALS, **options: Any) -> FakeHost:
        options = {"store": store, "env": model.environment, "args": plugins.args, **options}
        return await start_host(initialize=initialize, **options)

    return started


def approvals(session: HostSession) -> list[Json]:
    """What was asked for, by the events."""
    return [event for event in session.events("request.opened") if event["data"]["kind"] == "approval"]


@pytest.mark.parametrize(
    ("answer", "effects", "text"), [(ALLOW, ["soup"], "ordered soup"), (REJECT, [], REJECTED_TEXT)]
)
async def test_a_live_question_of_a_delegated_run_is_asked_in_its_name(
    start: Start, model: FakeModel, plugins: ToolPlugins, answer: Json, effects: list[str], text: str
) -> None:
    host = await start()
    host.serves["host/requestApproval"] = lambda params: answer
    session = await host.create_session(agent="boss")

    result = await session.run("go")

    assert result["text"] == "served"
    (asked,) = host.asked("host/requestApproval")
    (opened,) = approvals(session)
    (child,) = {event["runId"] for event in of_children(session.events())}
    assert child == asked["params"]["runId"] == opened["runId"] != result["runId"]
    assert (opened["parentRunId"], opened["parentCallId"]) == (result["runId"], "c0")
    assert plugins.effects == effects
    assert of(model, "helper")[-1].tool_results == {"c0": text}
    assert (await session.state())["pendingRequests"] == []


@pytest.mark.parametrize("agent", ["live", "inputRequired"])
async def test_where_nobody_can_be_asked_a_delegated_call_is_denied_and_the_parent_goes_on(
    start: Start, model: FakeModel, plugins: ToolPlugins, agent: str
) -> None:
    """A host that is silent; and an agent that never asks at once, whatever the host can do."""
    if agent == "inputRequired":
        file = plugins.folder / "sidecar.toml"
        file.write_text(file.read_text() + '\n[agents.helper.approvals]\nmode = "inputRequired"\n')
    host = await start(SILENT if agent == "live" else APPROVALS)
    session = await host.create_session(agent="boss")

    result = await session.run("go")

    assert (result["stopReason"], result["text"]) == ("endTurn", "served")
    assert "pendingRequests" not in result
    assert of(model, "helper")[-1].tool_results == {"c0": NOBODY_TEXT}
    assert (plugins.effects, approvals(session)) == ([], [])


async def open_question(host: FakeHost) -> HostSession:
    """A session whose delegated run waits for an approval."""
    session = await host.create_session(sessionId="s", agent="boss")
    session.start("go", runId="r")
    await host.until(lambda: host.asked("host/requestApproval"))
    return session


async def ends_once(host: FakeHost, model: FakeModel, plugins: ToolPlugins) -> None:
    """The question is over, and the session goes on."""
    session = await host.resume_session("s")
    assert session.opened["pendingRequests"] == []
    assert session.opened["session"]["status"] == "idle"
    page = await host.request("getEvents", {"sessionId": "s", "afterSeq": 0, "limit": 1000})
    opened, resolved = (
        [event["data"]["requestId"] for event in page["events"] if event["type"] == kind]
        for kind in ("request.opened", "request.resolved")
    )
    assert (len(opened), resolved) == (1, opened)
    late = {"sessionId": "s", "requestId": opened[0], "result": ALLOW}
    assert (await host.request("resolveRequest", late))["status"] in ("unknown", "alreadyResolved")
    cast(model, boss=lambda request: said("still here"))
    assert (await session.run("and now?"))["text"] == "still here"
    assert model.last_request.is_well_paired()
    assert plugins.effects == []


@pytest.mark.parametrize("way", ["killed", "shutdown", "end of a script's input", "end of an editor's input"])
async def test_a_question_of_a_delegated_run_ends_with_its_process(
    start: Start, model: FakeModel, plugins: ToolPlugins, way: str
) -> None:
    """It is never parked: nobody could go on with it."""
    host = await start(framing="header" if "editor" in way else "ndjson")
    session = await open_question(host)
    match way:
        case "killed":
            host.kill()
        case "shutdown":
            host.ask("shutdown")
            await host.until(lambda: session.events("run.completed")[1:])
            host.notify("exit")
        case _:
            host.hang_up()
    await host.wait()

    await ends_once(await start(), model, plugins)


async def test_cancelling_the_parent_ends_the_question_of_the_child(
    start: Start, model: FakeModel, plugins: ToolPlugins
) -> None:
    host = await start()
    session = await open_question(host)
    await session.cancel()
    await host.until(lambda: session.events("run.completed")[1:])
    (request,) = host.asked("host/requestApproval")
    host.reply(request, ALLOW)

    await ends_once(host, model, plugins)


async def test_a_gated_agent_is_asked_about_and_may_wait_over_a_restart(
    start: Start, model: FakeModel, plugins: ToolPlugins
) -> None:
    """Calling an agent is a call of the parent's: that one can be parked."""
    boss = [asks(("gated_helper", {"task": "soup!"})), said("served")]
    cast(model, boss=boss, helper=[asks(("place_order", {"dish": "soup"})), said("done")])
    host = await start(SILENT)
    session = await host.create_session(sessionId="s", agent="boss")
    (pending,) = (await session.run("go"))["pendingRequests"]
    assert pending["payload"]["toolCall"]["name"] == "gated_helper"
    host.kill()
    await host.wait()

    host = await start()
    host.serves["host/requestApproval"] = lambda params: ALLOW
    session = await host.resume_session("s")
    resolved = await host.request("resolveRequest", {"requestId": pending["requestId"], "result": ALLOW})
    await host.until(lambda: [e for e in session.events("run.completed") if e["runId"] == resolved["runId"]])
    assert plugins.effects == ["soup"]
    assert of(model, "boss")[-1].tool_results == {"c0": "done"}
