"""Agents as tools of other agents, over the wire: what the host is told, what each model sees, what stays."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.delegating import agents, asks, cast, of, said
from tests.bench.fake_model import EOF, FakeModel, Item, Raw, Recorded, Reply, Stall, T
from tests.bench.host import FakeHost, HostGone, HostSession
from tests.bench.ledger import Ledger, steady
from tests.bench.promises import hold
from tests.bench.promises_delegated import delegated
from tests.bench.wire import Json

TASK = {"task": "What is tea?"}


@pytest.fixture
async def start(start_host: Any, tmp_path: Path, model: FakeModel) -> Any:
    """Starts a sidecar with the agents of the bench."""
    plugins = agents(tmp_path)

    async def started(*, limits: str = "", env: dict[str, str] | None = None, **options: Any) -> FakeHost:
        with (tmp_path / "sidecar.toml").open("a") as file:
            file.write(f"\n[limits]\n{limits}\n" if limits else "")
        return await start_host(args=plugins.args, env={**model.environment, **(env or {})}, **options)

    return started


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The host's own record."""
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        yield ledger


@pytest.fixture
async def boss(start: Any) -> HostSession:
    """A session of the agent that has others work for it."""
    return await (await start()).create_session(sessionId="s", agent="boss")


def of_children(events: list[Json]) -> list[Json]:
    return [event for event in events if "parentRunId" in event]


def shown(events: list[Json], run_id: str) -> list[tuple[str, str]]:
    """Durable events, those of providers left out, and whose they are."""
    return [
        ("boss" if event["runId"] == run_id else "child", event["type"])
        for event in events
        if not event.get("ephemeral") and not event["type"].startswith("provider.")
    ]


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


# ---- how it ends --------------------------------------------------------------------------------------------------


async def test_cancelling_the_caller_cancels_what_it_has_delegated(boss: HostSession, model: FakeModel) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK))], researcher=[[T("Let me"), Stall()]])
    run = boss.start("Tell me of tea", runId="r")
    await boss.host.until(lambda: of_children(boss.events("message.delta")))
    assert (await boss.state())["activeRun"]["runId"] == "r"
    child = of_children(boss.events("run.started"))[0]["runId"]
    seen = await boss.host.request("explainRun", {"sessionId": "s", "runId": child})
    assert (seen["agent"], len(seen["calls"])) == ("Research Agent", 1)

    assert await boss.cancel() == "cancelling"
    result = await run.result()

    assert result["status"] == "cancelled"
    ends = [(event["data"]["status"], "parentRunId" in event) for event in boss.events("run.completed")]
    assert ends == [("cancelled", True), ("cancelled", False)]
    assert [event["data"]["status"] for event in boss.events("tool.completed")] == ["cancelled"]
    assert shown(boss.events(), "r")[-5:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    assert "abandoned" not in {warning["kind"] for warning in result["warnings"]}
    assert "activeRun" not in await boss.state()


async def test_a_delegated_run_can_be_cancelled_by_its_own_id_and_its_caller_goes_on(
    boss: HostSession, model: FakeModel
) -> None:
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[[T("Let me"), Stall()]])
    run = boss.start("Tell me of tea")
    await boss.host.until(lambda: of_children(boss.events("message.delta")))
    child = of_children(boss.events("run.started"))[0]["runId"]

    assert await boss.cancel(runId=child) == "cancelling"

    assert (await run.result())["text"] == "Never mind."
    assert (await boss.state(runId=child))["run"]["status"] == "cancelled"
    assert "stopped" in of(model, "boss")[-1].tool_results["c0"]
    assert await boss.cancel(runId=child) == "alreadyFinished"


async def test_a_delegated_run_that_fails_is_an_error_result_and_its_caller_goes_on(
    boss: HostSession, model: FakeModel
) -> None:
    broken = Reply([Raw(b'{"error": {"message": "no such tea"}}'), EOF], 400, {"content-type": "application/json"})
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[broken])

    result = await boss.run("Tell me of tea")

    assert result["text"] == "Never mind."
    (end,) = of_children(boss.events("run.completed"))
    assert (end["data"]["status"], end["data"]["error"]["data"]["kind"]) == ("failed", "modelBadRequest")
    told = of(model, "boss")[-1].tool_results["c0"]
    assert told == f"Error: Agent 'Research Agent' failed: {end['data']['error']['message']}"
    assert [event["data"]["status"] for event in boss.events("tool.completed")] == ["failed"]


async def test_a_call_whose_time_is_over_ends_the_delegated_run_before_it_is_told(start: Any, model: FakeModel) -> None:
    session = await (await start(limits="tool_timeout_ms = 300")).create_session(agent="boss")
    cast(model, boss=[asks(("Research_Agent", TASK)), said("Never mind.")], researcher=[[T("Let me"), Stall()]])

    result = await session.run("Tell me of tea", runId="r")

    assert result["text"] == "Never mind."
    assert shown(session.events(), "r")[-6:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    assert "did not end within 0.3 s" in of(model, "boss")[-1].tool_results["c0"]
    assert [event["data"]["status"] for event in session.events("run.completed")] == ["cancelled", "completed"]


async def test_a_delegated_run_that_makes_nothing_of_a_cancel_still_ends_before_its_caller(
    start: Any, model: FakeModel
) -> None:
    session = await (await start()).create_session(agent="boss")
    cast(model, boss=[asks(("Research_Agent", TASK))], researcher=[asks(("stubborn", {}))])
    run = session.start("Tell me of tea", runId="r")
    await session.host.until(lambda: len(session.events("tool.started")) == 2)

    await session.cancel()
    result = await run.result()

    assert result["status"] == "cancelled"
    assert shown(session.events(), "r")[-7:] == [
        ("child", "tool.completed"),
        ("child", "message.completed"),
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "usage.updated"),
        ("boss", "run.completed"),
    ]
    delegated("s", session.durable())


@pytest.mark.parametrize(
    "point",
    ["run.begin.before:2", "run.begin.after:2", "tool.intent.before:2", "tool.intent.after:2", "tool.effect.after:1",
     "run.end.before:1", "run.end.after:1", "tool.effect.after:2", "run.end.before:2"],
)  # fmt: skip
async def test_a_kill_at_a_named_point_of_a_delegating_run_breaks_no_promise(
    start: Any, store: str, model: FakeModel, ledger: Ledger, point: str
) -> None:
    armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": point}
    doomed = await start(store=store, ledger=ledger, env=armed)
    session = await doomed.create_session(sessionId="s", agent="boss")
    cast(
        model,
        boss=lambda request: (
            asks(("shared", {"query": f"sub {request.last_user_text}"})) if request.roles[-1] == "user" else said("ok")
        ),
        researcher=[asks(("remember", {"topic": "tea"})), said("Kept.")],
    )
    with contextlib.suppress(HostGone):
        await session.run("first", runId="r1")
    doomed.hang_up()
    assert await doomed.wait() == -signal.SIGKILL

    host = await start(store=store, ledger=ledger)
    await hold(ledger, host, model.requests)
    again = await host.resume_session("s")
    assert (await again.run("first", runId="r1"))["status"] == "interrupted"
    assert (await again.run("second", runId="r2"))["text"] == "ok"
    assert (await again.state())["state"]["topic"] == "tea"
    await hold(ledger, host, model.requests)


async def test_a_kill_in_a_delegated_run_ends_both_runs_and_leaves_the_call_unknown(
    start: Any, store: str, model: FakeModel, ledger: Ledger
) -> None:
    doomed = await start(store=store, ledger=ledger)
    session = await doomed.create_session(sessionId="s", agent="boss")
    cast(model, boss=[asks(("shared", {"query": "tea"})), said("Again.")], researcher=[[T("Let me"), Stall()]])
    session.start("Tell me of tea", runId="r")
    await doomed.until(lambda: of_children(session.events("message.delta")))
    child = of_children(session.events("run.started"))[0]["runId"]
    doomed.kill()
    await doomed.wait()

    host = await start(store=store, ledger=ledger)
    resumed = await host.resume_session("s")

    assert resumed.opened["recovered"]["interruptedRuns"] == [child, "r"]
    events = (await host.request("getEvents", {"sessionId": "s", "afterSeq": 0}))["events"]
    assert shown(events, "r")[-4:] == [
        ("child", "run.completed"),
        ("boss", "tool.completed"),
        ("boss", "message.completed"),
        ("boss", "run.completed"),
    ]
    assert [event["data"]["status"] for event in events if event["type"] == "tool.completed"] == ["unknown"]
    assert {event["data"]["status"] for event in events if event["type"] == "run.completed"} == {"interrupted"}
    await hold(ledger, host, model.requests)


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
