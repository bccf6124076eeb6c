"""Agents as tools of other agents, over the wire: what the host is told, what each model sees, what is shared."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.delegating import asks, cast, of, of_children, said, shown, starter
from tests.bench.fake_model import FakeModel, Item, Recorded, Stall, T
from tests.bench.host import HostSession
from tests.bench.ledger import steady

TASK = {"task": "What is tea?"}


@pytest.fixture
async def start(start_host: Any, tmp_path: Path, model: FakeModel) -> Any:
    """Starts a sidecar with the agents of the bench."""
    return starter(start_host, tmp_path, model)


@pytest.fixture
async def boss(start: Any) -> HostSession:
    """A session of the agent that has others work for it."""
    return await (await start()).create_session(sessionId="s", agent="boss")


# ---- what is told -------------------------------------------------------------------------------------------------


async def test_a_delegated_run_stands_whole_between_the_start_and_the_end_of_its_call(
    boss: HostSession, model: FakeModel
) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK)), said("It is a drink.")], researcher=[said("A drink.")])

    run = boss.start("Tell me of tea", runId="r")
    result = await run.result()

    assert result["text"] == "It is a drink."
    assert shown(boss.events(), "r") == [
        ("boss", "run.started"),
        ("boss", "message.completed"),
        ("boss", "message.completed"),
        ("boss", "tool.started"),
        ("child", "run.started"),
        ("child", "message.completed"),
        ("child", "message.completed"),
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    child = of_children(boss.events())
    assert {(event["parentRunId"], event["parentCallId"]) for event in child} == {("r", "c0")}
    assert len({event["runId"] for event in child}) == 1
    assert child[0]["data"]["agent"] == "Research Agent"
    assert "message.delta" in {event["type"] for event in child if event.get("ephemeral")}
    assert not boss.events("tool.delta")
    (ended,) = boss.events("tool.completed")
    assert ended["data"]["content"] == [{"type": "text", "text": "A drink."}]


async def test_the_model_is_told_of_the_other_agent_as_its_entry_says(boss: HostSession, model: FakeModel) -> None:
    cast(model, boss=[said("No need.")])

    await boss.run("Hello")

    offered = {tool["function"]["name"]: tool["function"] for tool in model.last_request.body["tools"]}
    assert offered["Research_Agent"]["description"] == "Finds things out."
    assert list(offered["Research_Agent"]["parameters"]["properties"]) == ["task"]
    assert offered["shared"]["description"] == "Research, and leave it in the session."
    assert offered["shared"]["parameters"]["properties"]["query"]["description"] == "what to look for"
    assert offered["shared"]["parameters"]["required"] == ["query"]


async def test_neither_model_sees_the_other_conversation(boss: HostSession, model: FakeModel) -> None:
    """Case 34: histories never mix, and each call is a conversation of its own."""
    cast(
        model,
        boss=lambda request: (
            said(f"boss heard {list(request.tool_results.values())[-1]}")
            if request.roles[-1] == "tool"
            else asks(("Research_Agent", {"task": f"sub {request.last_user_text}"}), ("shared", {"query": "sub more"}))
        ),
        researcher=lambda request: said(f"about {request.last_user_text}"),
    )

    await boss.run("first")
    await boss.run("second")

    assert sorted(request.text for request in of(model, "researcher")) == [
        "I am researcher.\nsub first",
        "I am researcher.\nsub more",
        "I am researcher.\nsub more",
        "I am researcher.\nsub second",
    ]
    assert await boss.history() == [
        ("user", "first"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "boss heard about sub more"),
        ("user", "second"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "boss heard about sub more"),
    ]
    assert all("researcher" not in request.text for request in of(model, "boss"))


async def test_a_delegated_run_is_found_by_its_id_and_counts_in_its_callers_usage(
    boss: HostSession, model: FakeModel
) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Done.")], researcher=[said("A drink.")])

    result = await boss.run("Tell me of tea", runId="r")

    started, ended = (of_children(boss.events(kind))[0] for kind in ("run.started", "run.completed"))
    found = await boss.state(runId=started["runId"])
    assert (found["run"]["runId"], found["run"]["status"]) == (started["runId"], "completed")
    told = await boss.host.request("explainRun", {"sessionId": boss.id, "runId": started["runId"]})
    assert told["agent"] == "Research Agent"
    assert [instruction["text"] for instruction in told["calls"][0]["instructions"]] == ["I am researcher."]
    own = await boss.host.request("explainRun", {"sessionId": boss.id, "runId": "r"})
    assert len(own["calls"]) == 2
    counted = sum(call["usage"]["outputTokens"] for call in (*own["calls"], *told["calls"]))
    assert ended["data"]["usage"]["outputTokens"] == told["calls"][0]["usage"]["outputTokens"]
    assert result["usage"]["outputTokens"] == counted


async def test_live_and_replayed_events_of_delegated_runs_are_equal(start: Any, store: str, model: FakeModel) -> None:
    host = await start(store=store)
    session = await host.create_session(sessionId="s", agent="boss")
    cast(
        model,
        boss=[asks(("shared", {"query": "tea"})), said("Done.")],
        researcher=[asks(("remember", {"topic": "tea"})), said("Kept.")],
    )
    await session.run("Tell me of tea")
    await session.host.request("closeSession", {"sessionId": "s"})
    live = [steady(event) for event in session.durable()]

    again = await start(store=store)
    await again.resume_session("s", replayFrom={"type": "start"})
    replayed = await again.until(lambda: again.events("s") if len(again.events("s")) >= len(live) else None)
    stored = (await again.request("getEvents", {"sessionId": "s", "afterSeq": 0}))["events"]

    assert [steady(event) for event in replayed] == live
    assert [steady(event) for event in stored] == live
    assert len(of_children(live)) > 5


# ---- what is shared -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [True, False])
async def test_session_and_state_are_the_callers_only_if_they_are_propagated_and_kwargs_always_arrive(
    boss: HostSession, model: FakeModel, *, is_shared: bool
) -> None:
    """Case 34."""
    cast(
        model,
        boss=[asks(("shared", {"query": "tea"}) if is_shared else ("Research_Agent", TASK)), said("Done.")],
        researcher=[asks(("remember", {"topic": "tea"}), ("who", {})), said("Kept.")],
    )

    await boss.run(
        "Tell me of tea",
        functionInvocationKwargs={"user_id": "u"},
        properties={"tenant": "t"},
        clientKwargs={"extraBody": {"for_the_caller": 1}},
    )

    who = of(model, "researcher")[-1].tool_results["c1"]
    assert '"user_id": "u"' in who
    assert '"tenant": "t"' in who
    assert ('"session": "s"' in who) == is_shared
    assert '"session": null' not in who
    state = (await boss.state())["state"]
    assert ("topic" in state) == is_shared
    assert not [key for key in state if "audit" in key]
    assert all("for_the_caller" in request.body for request in of(model, "boss"))
    assert not [request for request in of(model, "researcher") if "for_the_caller" in request.body]


async def test_two_agents_may_call_each_other_down_to_the_limit(start: Any, model: FakeModel) -> None:
    session = await (await start()).create_session(agent="ping")

    def pass_on(request: Recorded) -> list[Item]:
        (other,) = request.tool_names or ["none"]
        if request.roles[-1] == "tool":
            return said(f"back: {request.tool_results['c0']}")
        return asks((other, {"task": "go on"}))

    cast(model, ping=pass_on, pong=pass_on)

    result = await session.run("go")

    assert result["text"].startswith("back: back: back: back: back: Error: Agent 'pong' was not called")
    assert len(session.events("run.started")) == 5
    depths: dict[str, int] = {}
    for event in session.events("run.started"):
        depths[event["runId"]] = depths.get(event.get("parentRunId", ""), -1) + 1
    assert list(depths.values()) == [0, 1, 2, 3, 4]
    ends = [depths[event["runId"]] for event in session.events("run.completed")]
    assert ends == [4, 3, 2, 1, 0]


async def test_delegated_runs_of_one_answer_run_side_by_side(boss: HostSession, model: FakeModel) -> None:
    cast(
        model,
        boss=[asks(("Research_Agent", {"task": "slow"}), ("Research_Agent", {"task": "quick"})), said("Done.")],
        researcher=lambda request: (
            [Stall(0.3), T("slow one")] if request.last_user_text == "slow" else said("quick one")
        ),
    )

    await boss.run("both")

    assert of(model, "boss")[-1].tool_results == {"c0": "slow one", "c1": "quick one"}
    starts, ends = (of_children(boss.events(kind)) for kind in ("run.started", "run.completed"))
    assert sorted(event["parentCallId"] for event in starts) == ["c0", "c1"]
    assert [event["parentCallId"] for event in ends] == ["c1", "c0"]
    assert starts[1]["seq"] < ends[0]["seq"]


async def test_a_one_off_run_delegates_too_and_a_shared_session_is_none(start: Any, model: FakeModel) -> None:
    host = await start()
    cast(
        model,
        boss=[asks(("shared", {"query": "tea"}), ("Research_Agent", TASK)), said("Done.")],
        researcher=[asks(("who", {})), said("{}")],
    )

    result = await host.request("run", {"agent": "boss", "input": "Tell me of tea", "runId": "r"})

    assert result["text"] == "Done."
    whose = {request.last_user_text: request.tool_results["c0"] for request in of(model, "researcher")[2:]}
    assert '"session": null' in whose["tea"]
    assert '"session": null' not in whose["What is tea?"]


async def test_a_fork_has_no_place_at_a_delegated_run_and_none_of_its_messages(
    boss: HostSession, model: FakeModel
) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Done.")], researcher=[said("A drink.")])
    await boss.run("Tell me of tea", runId="r")
    child = of_children(boss.events("run.started"))[0]["runId"]

    refused = await boss.host.refusal("forkSession", {"sessionId": "s", "throughRunId": child})
    forked = await boss.host.request("forkSession", {"sessionId": "s", "throughRunId": "r", "newSessionId": "f"})

    assert refused.kind == "runNotFound"
    assert forked["session"]["sessionId"] == "f"
    there = HostSession(boss.host, "f", forked)
    assert [text for _, text in await there.history()] == ["Tell me of tea", "", "", "Done."]


async def test_an_unknown_agent_is_refused_when_the_session_is_created(start_host: Any, tmp_path: Path) -> None:
    host = await start_host()

    refused = await host.refusal(
        "createSession", {"agent": {"tools": [{"type": "agent", "agent": "nobody"}], "model": "scripted:echo"}}
    )

    assert (refused.code, refused.kind) == (4010, "agentNotFound")
