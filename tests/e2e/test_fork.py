"""`forkSession`: a session that begins with another one's conversation and state, and then goes its own way."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel, Stall, T
from tests.bench.host import FakeHost, HostSession
from tests.bench.tool_plugins import tool_plugins


async def forked(session: HostSession, **params: Any) -> HostSession:
    """A fork, which is open at once."""
    result = await session.host.request("forkSession", {"sessionId": session.id, **params})
    return HostSession(session.host, result["session"]["sessionId"], result)


async def three_runs(host: FakeHost, **params: Any) -> HostSession:
    """A session with the runs r1, r2 and r3."""
    session = await host.create_session(model="scripted:echo", **params)
    for number in (1, 2, 3):
        await session.run(f"say {number}", runId=f"r{number}")
    return session


@pytest.mark.parametrize(
    ("cut", "kept"),
    [({}, [1, 2, 3]), ({"throughRunId": "r2"}, [1, 2]), ({"beforeRunId": "r2"}, [1]), ({"beforeRunId": "r1"}, [])],
)
async def test_a_fork_keeps_the_conversation_up_to_a_run(host: FakeHost, cut: dict[str, str], kept: list[int]) -> None:
    source = await three_runs(host, state={"k": {"v": 1}}, title="a title", metadata={"m": [1]})

    fork = await forked(source, **cut)

    assert [text for _, text in await fork.history()] == [f"say {n}" for n in kept for _ in range(2)]
    info = fork.opened["session"]
    assert (info["parentSessionId"], info["lastSeq"], info["revision"]) == (source.id, 0, 0)
    assert (info["title"], info["metadata"], info["open"]) == ("a title", {"m": [1]}, True)
    assert info["epoch"] != (await source.state())["epoch"]
    assert (await fork.state())["state"]["k"] == {"v": 1}


async def test_source_and_fork_do_not_see_each_other(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    source = await host.create_session(state={"k": 1})
    model.otherwise(lambda request: [f"re: {request.last_user_text}"])
    await source.run("one", runId="r1")
    fork = await forked(source)

    await source.run("two")
    await host.request("updateSession", {"sessionId": source.id, "statePatch": {"k": 2}})
    result = await fork.run("three")

    sent = [m["content"] for m in model.last_request.messages if m["role"] != "system"]
    assert sent == ["one", "re: one", "three"]
    assert [event["seq"] for event in fork.durable()] == list(range(1, result["lastSeq"] + 1))
    assert [text for _, text in await source.history()] == ["one", "re: one", "two", "re: two"]
    assert (await fork.state())["state"]["k"] == 1


async def test_editing_the_last_message_is_a_fork_before_its_run(host: FakeHost) -> None:
    source = await three_runs(host)
    fork = await forked(source, beforeRunId="r3")

    await fork.run("say 3, differently")

    texts = [text for _, text in await fork.history()]
    assert texts[-2:] == ["say 3, differently"] * 2
    assert len(texts) == 6
    again = await forked(fork, throughRunId="r1")  # the runs keep their ids
    assert len(await again.history()) == 2


async def test_a_running_session_is_forked_as_if_interrupted(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    source = await host.create_session()
    model.says(T("a"), Stall())
    run = source.start("one")
    await run.text_contains("a")
    steer = {"sessionId": source.id, "expectedRunId": run.id, "input": "also"}
    assert (await host.request("steerRun", steer))["accepted"] is True

    fork = await forked(source)
    before = await forked(source, beforeRunId=run.id)

    assert await fork.history() == [("user", "one"), ("user", "also")]
    assert await before.history() == []
    assert fork.opened["session"]["status"] == "idle"
    assert (await source.state())["activeRun"]["runId"] == run.id
    model.says("b")
    assert (await fork.run("two"))["text"] == "b"
    await source.cancel()
    await run.result()


async def test_a_failed_run_is_a_place_to_cut_at_but_none_of_it_is_kept(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    source = await host.create_session()
    model.says("a")
    await source.run("one", runId="r1")
    model.fails(400)
    await source.start("two", runId="r2").asked.message()
    model.says("c")
    await source.run("three", runId="r3")

    assert await (await forked(source, throughRunId="r2")).history() == [("user", "one"), ("assistant", "a")]
    assert await (await forked(source, beforeRunId="r2")).history() == [("user", "one"), ("assistant", "a")]


async def test_what_cannot_be_forked_is_refused_by_name(host: FakeHost) -> None:
    source = await three_runs(host, sessionId="source")
    params = {"sessionId": "source"}

    refusals = [
        await host.refusal("forkSession", {"sessionId": "nobody"}),
        await host.refusal("forkSession", {**params, "throughRunId": "r9"}),
        await host.refusal("forkSession", {**params, "newSessionId": "source"}),
        await host.refusal("forkSession", {**params, "throughRunId": "r1", "beforeRunId": "r2"}),
    ]

    kinds = [refusal.kind for refusal in refusals]
    assert kinds == ["sessionNotFound", "runNotFound", "sessionExists", "invalidParams"]
    assert len(await source.history()) == 6


async def test_an_id_is_taken_also_by_an_ephemeral_session(host: FakeHost) -> None:
    source = await three_runs(host)
    await host.create_session(sessionId="taken", ephemeral=True, model="scripted:echo")

    refusal = await host.refusal("forkSession", {"sessionId": source.id, "newSessionId": "taken"})

    assert refusal.kind == "sessionExists"


async def test_a_fork_is_ephemeral_if_its_source_is_unless_the_host_says_otherwise(host: FakeHost) -> None:
    source = await three_runs(host, ephemeral=True)

    like_source, stored = await forked(source), await forked(source, ephemeral=False)

    listed = {session["sessionId"] for session in (await host.request("listSessions"))["sessions"]}
    assert listed == {stored.id}
    assert len(await like_source.history()) == 6


async def test_a_stored_session_is_forked_without_being_opened(start_host: Any, store: str) -> None:
    first = await start_host(store=store)
    await three_runs(first, sessionId="source")
    other = await start_host(store=store)

    fork = HostSession(other, "f", await other.request("forkSession", {"sessionId": "source", "newSessionId": "f"}))

    assert len(await fork.history()) == 6
    assert (await other.request("getState", {"sessionId": "source"}))["session"]["open"] is False
    assert (await fork.run("on"))["text"] == "on"


async def test_a_fork_and_what_names_it_may_be_sent_in_one_read(host: FakeHost) -> None:
    source = await three_runs(host)
    host.ask("forkSession", {"sessionId": source.id, "newSessionId": "f"})

    run = host.ask("run", {"sessionId": "f", "input": "more"})
    history = host.ask("getHistory", {"sessionId": "f", "limit": 1})

    assert (await run.result())["text"] == "more"
    assert len((await history.result())["messages"]) == 1


@pytest.mark.parametrize("way", ["fork", "document"])
async def test_a_call_that_is_under_way_is_closed_in_a_copy(
    start_host: Any, model: FakeModel, tmp_path: Path, way: str
) -> None:
    plugins = tool_plugins(tmp_path)
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    source = await host.create_session()
    model.says(
        TC(0, "quick", "add", '{"a": 1, "b": 2}'),
        TC(1, "slow", "place_order", '{"dish": "soup", "seconds": 30}'),
        F("tool_calls"),
    )
    run = source.start("order")
    await run.event("tool.completed")

    if way == "fork":
        copy = await forked(source)
    else:
        document = (await host.request("exportSession", {"sessionId": source.id}))["document"]
        await host.request("importSession", {"document": document, "newSessionId": "copy"})
        copy = HostSession(host, "copy", {})

    found = await host.request("getHistory", {"sessionId": copy.id})
    results = {block["callId"]: block["content"][0]["text"] for block in found["messages"][-1]["content"]}
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "tool"]
    assert results["quick"] == "3"
    assert results["slow"].startswith("Outcome unknown")
    assert await source.history() == [("user", "order"), ("assistant", "")]
    await source.cancel()
