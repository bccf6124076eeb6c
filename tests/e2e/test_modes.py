"""Modes and plans over the wire: a provider that has them, as a host and an ACP client see them, live and replayed."""

from pathlib import Path
from typing import Any

from tests.bench.acp_client import CAPABLE, Acp
from tests.bench.host import FakeHost, HostSession
from tests.bench.moding import configure
from tests.e2e.cli_process import Cli

MODE = {
    "id": "mode",
    "name": "Mode",
    "value": "plan",
    "choices": [
        {"value": "plan", "name": "plan", "description": "Thinks first"},
        {"value": "execute", "name": "execute"},
    ],
}
BEGUN = [
    {"id": "1", "title": "Look", "description": "around", "status": "completed"},
    {"id": "2", "title": "Leap", "status": "inProgress"},
]


async def started(start_host: Any, folder: Path, store: str) -> FakeHost:
    return await start_host(store=store, args=("--config", str(configure(folder))))


def mode_of(answer: dict[str, Any]) -> Any:
    (option,) = [option for option in answer["configOptions"] if option["id"] == "mode"]
    return option


def changes(session: HostSession) -> list[dict[str, Any]]:
    return [event["data"] for event in session.events("mode.changed")]


async def test_a_host_sees_the_modes_and_switches_between_them(start_host: Any, tmp_path: Path, store: str) -> None:
    host = await started(start_host, tmp_path, store)
    session = await host.create_session()
    assert mode_of(session.opened) == MODE

    answer = await host.request("updateSession", {"sessionId": session.id, "configOptions": {"mode": "Execute"}})

    assert mode_of(answer)["value"] == "execute"
    assert changes(session) == [{"mode": "execute", "previous": "plan", "by": "host"}]
    run = session.start("hello", runId="r")
    await run.result()
    explained = await host.request("explainRun", {"sessionId": session.id, "runId": "r"})
    assert "Mode: execute" in [piece["text"] for piece in explained["calls"][0]["instructions"]]
    same = await host.request("updateSession", {"sessionId": session.id, "configOptions": {"mode": "execute"}})
    assert same["session"]["revision"] == answer["session"]["revision"]
    assert len(changes(session)) == 1


async def test_a_session_begins_in_the_mode_that_is_named(start_host: Any, tmp_path: Path, store: str) -> None:
    host = await started(start_host, tmp_path, store)

    session = await host.create_session(mode="execute")

    assert mode_of(session.opened)["value"] == "execute"
    assert (await session.state())["state"]["working"] == {"mode": "execute"}
    host.kill()
    await host.wait()
    again = await started(start_host, tmp_path, store)
    assert mode_of((await again.resume_session(session.id)).opened)["value"] == "execute"


async def test_a_mode_that_is_not_there_is_refused_with_those_that_are(
    start_host: Any, tmp_path: Path, store: str
) -> None:
    host = await started(start_host, tmp_path, store)
    session = await host.create_session()
    for mode in ("chaos", "", None, 7):
        refused = await host.refusal(
            "updateSession", {"sessionId": session.id, "title": "no", "configOptions": {"mode": mode}}
        )
        assert (refused.kind, "plan, execute" in refused.message) == ("invalidParams", True)
    refused = await host.refusal("createSession", {"sessionId": "s", "mode": "chaos"})
    assert (refused.kind, "plan, execute" in refused.message) == ("invalidParams", True)
    assert "title" not in (await session.state())["session"]
    plain = {"sessionId": "plain", "agent": {"model": "scripted:echo"}}
    assert (await host.refusal("createSession", {**plain, "mode": "plan"})).kind == "capabilityRequired"
    await host.create_session(**plain)
    refused = await host.refusal("updateSession", {"sessionId": "plain", "configOptions": {"mode": "plan"}})
    assert (refused.kind, refused.data["feature"]) == ("capabilityRequired", "modes")


async def test_the_model_switches_by_a_tool_and_a_failed_patch_switches_nothing(
    start_host: Any, tmp_path: Path, store: str
) -> None:
    host = await started(start_host, tmp_path, store)
    session = await host.create_session()

    await session.run("execute")

    assert changes(session) == [{"mode": "execute", "previous": "plan", "by": "model"}]
    types = [event["type"] for event in session.durable()]
    assert types.index("mode.changed") < types.index("run.completed")
    await host.refusal("updateSession", {"sessionId": session.id, "statePatch": {"working": 7}})
    await host.request("updateSession", {"sessionId": session.id, "statePatch": {"working": {"mode": "plan"}}})
    assert changes(session)[1:] == [{"mode": "plan", "previous": "execute", "by": "host"}]


async def test_a_plan_is_told_as_it_changes_and_replayed(start_host: Any, tmp_path: Path, store: str) -> None:
    host = await started(start_host, tmp_path, store)
    session = await host.create_session()

    await session.run("work")

    plans = session.events("plan.updated")
    done = [BEGUN[0], {**BEGUN[1], "status": "completed"}]
    assert [plan["data"]["entries"] for plan in plans] == [BEGUN, done]
    assert plans[0]["source"] == {"type": "provider", "sourceId": "working", "sourceType": "Working"}
    types = [event["type"] for event in session.durable()]
    assert (
        types.index("tool.started") < len(types) - 1 - types[::-1].index("plan.updated") < types.index("tool.completed")
    )
    await host.resume_session(session.id, replayFrom={"type": "start"})
    await host.until(lambda: len(host.events(session.id, "plan.updated")) == 4)
    again = host.events(session.id, "plan.updated")[2:]
    assert [(event["seq"], event["source"]) for event in again] == [(plan["seq"], plan["source"]) for plan in plans[:2]]


async def test_an_acp_client_has_both(tmp_path: Path) -> None:
    async with Acp(Cli(tmp_path), "--config", str(configure(tmp_path)), "--store", "memory") as acp:
        await acp.initialize(CAPABLE)
        opened = await acp.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert opened["modes"] == {
            "currentModeId": "plan",
            "availableModes": [
                {"id": "plan", "name": "plan", "description": "Thinks first"},
                {"id": "execute", "name": "execute"},
            ],
        }
        session = opened["sessionId"]

        await acp.request("session/set_mode", {"sessionId": session, "modeId": "execute"})
        await acp.prompt(session, "work")

        assert [update["currentModeId"] for update in acp.of_kind("current_mode_update")] == ["execute"]
        assert [(update["used"], update["size"]) for update in acp.of_kind("usage_update")] == [(6, 900)]
        plans = [[entry["status"] for entry in update["entries"]] for update in acp.of_kind("plan")]
        assert plans == [["completed", "in_progress"], ["completed", "completed"]]
        options = {
            option["id"]: option["currentValue"]
            for update in acp.of_kind("config_option_update")
            for option in update["configOptions"]
        }
        assert options.get("mode", "execute") == "execute"
