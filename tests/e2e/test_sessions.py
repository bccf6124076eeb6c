"""Sessions over the wire: made once, read while they are closed, listed page by page, closed in mid-run."""

import asyncio
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost

START = {"type": "start"}


# ---- made once ---------------------------------------------------------------------------------------------------


async def test_the_same_create_gives_the_same_session_while_it_is_open(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    payload = {"sessionId": "s", "model": "scripted:echo", "state": {"n": 1}, "title": "one"}
    first = await host.create_session(**payload)
    await first.run("hello")
    again = await host.create_session(**payload)

    assert again.opened["session"]["epoch"] == first.opened["session"]["epoch"]
    assert again.opened["lastSeq"] == first.durable()[-1]["seq"]
    assert (await again.run("still here"))["text"] == "still here"
    for changed in ({"title": "two"}, {"state": {"n": 2}}, {"model": "scripted:other"}, {"cwd": "/tmp"}):
        refused = await host.refusal("createSession", {**payload, **changed})
        assert (changed, refused.kind) == (changed, "idempotencyConflict")
    assert len((await host.request("listSessions"))["sessions"]) == 1


async def test_the_same_create_opens_what_an_earlier_process_stored(start_host: Any, store: str) -> None:
    payload = {"sessionId": "s", "model": "scripted:echo", "state": {"n": 1}}
    host = await start_host(store=store)
    first = await host.create_session(**payload)
    await first.run("hello")
    host.kill()
    await host.wait()

    host = await start_host(store=store)
    again = await host.create_session(**payload)

    assert again.opened["session"]["epoch"] == first.opened["session"]["epoch"]
    assert (await again.run("more"))["text"] == "more"
    assert [role for role, _ in await again.history()] == ["user", "assistant", "user", "assistant"]
    assert (await host.refusal("createSession", {**payload, "state": {"n": 2}})).kind == "idempotencyConflict"


async def test_creates_with_one_id_in_one_read_make_one_session(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    payload = {"sessionId": "s", "model": "scripted:echo"}
    asked = [
        host.ask("createSession", payload),
        host.ask("run", {"sessionId": "s", "input": "one"}),
        host.ask("createSession", payload),
        host.ask("createSession", {**payload, "title": "other"}),
        host.ask("getState", {"sessionId": "s"}),
        host.ask("closeSession", {"sessionId": "s"}),
        host.ask("run", {"sessionId": "s", "input": "two"}),
    ]
    created, run, again, other, state, closed, refused = [await one.message() for one in asked]

    assert created["result"]["session"]["epoch"] == again["result"]["session"]["epoch"]
    assert run["result"]["status"] in ("completed", "cancelled")
    assert other["error"]["data"]["kind"] == "idempotencyConflict"
    assert state["result"]["session"]["sessionId"] == "s"
    assert closed["result"] == {}
    assert refused["error"]["data"]["kind"] == "sessionClosed"
    assert host.messages.index(created) < min(host.messages.index(m) for m in host.messages if "method" in m)


@pytest.mark.parametrize("first_is_ephemeral", [True, False])
async def test_an_id_names_one_session_ephemeral_or_not(start_host: Any, store: str, first_is_ephemeral: bool) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model="scripted:echo", ephemeral=first_is_ephemeral)
    refused = await host.refusal(
        "createSession", {"sessionId": "s", "model": "scripted:echo", "ephemeral": not first_is_ephemeral}
    )
    assert refused.kind == "idempotencyConflict"
    assert (await session.run("hello"))["text"] == "hello"


async def test_a_one_off_run_that_is_asked_for_again_is_not_done_again(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    model.says("once", Stall(0.1), T("!"))
    payload = {"input": "hi", "runId": "r"}
    first = await host.request("run", payload)
    assert await host.request("run", payload) == first
    assert (await host.refusal("run", {**payload, "input": "other"})).kind == "idempotencyConflict"
    assert len(model.requests) == 1


async def test_a_refused_create_leaves_nothing_behind(host: FakeHost) -> None:
    for wrong in (
        {"agent": "nobody"},
        {"contextProviders": [{"type": "static_messages"}]},
        {"contextProviders": [{"type": "instructions", "sourceId": "x"}, {"type": "instructions", "sourceId": "x"}]},
        {"state": {"in_memory": 5}},
    ):
        await host.refusal("createSession", {"sessionId": "s", **wrong})
    assert (await host.request("listSessions"))["sessions"] == []
    assert (await host.refusal("getState", {"sessionId": "s"})).kind == "sessionNotFound"
    assert await host.create_session(sessionId="s", model="scripted:echo")


# ---- stored, and not open here ----------------------------------------------------------------------------------


async def test_a_stored_session_can_be_read_but_not_run_until_it_is_resumed(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model="scripted:echo", state={"n": 1})
    result = await session.run("hello", runId="r")
    open_state = await session.state(runId="r")
    await host.request("closeSession", {"sessionId": "s"})

    for params in ({"input": "x"}, {"input": "hello", "runId": "r"}):
        refused = await host.refusal("run", {"sessionId": "s", **params})
        assert refused.kind == "sessionClosed"
        assert "resumeSession" in refused.message
    state = await session.state(runId="r")
    assert state["session"] == {**open_state["session"], "open": False}
    for part in ("revision", "epoch", "lastSeq", "state", "usage", "run", "queue", "pendingRequests"):
        assert state[part] == open_state[part]
    assert len(await session.history()) == 2
    assert await session.cancel(runId="r") == "alreadyFinished"
    assert (await session.state(ifRevision=state["revision"])) == {"unchanged": True, "revision": state["revision"]}
    assert "session" in await session.state(ifRevision=state["revision"] + 1)
    again = await host.resume_session("s")
    assert await again.run("hello", runId="r") == result
    for method in ("resumeSession", "closeSession", "getState", "getHistory"):
        assert (await host.refusal(method, {"sessionId": "nobody"})).kind == "sessionNotFound"
    assert (await host.refusal("run", {"sessionId": "nobody", "input": "x"})).kind == "sessionNotFound"


async def test_state_is_never_unchanged_while_a_run_is_active(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    revision = session.opened["session"]["revision"]
    assert await session.state(ifRevision=revision) == {"unchanged": True, "revision": revision}
    model.hangs()
    run = session.start("go")
    await model.received()
    assert (await session.state(ifRevision=revision))["activeRun"]["runId"] == run.id
    await session.cancel()
    await run.result()
    assert await session.state(ifRevision=revision) == {"unchanged": True, "revision": revision}
    assert set(await session.state(include=["usage"])) == {"server", "usage", "revision", "epoch", "lastSeq"}


# ---- listed and read ---------------------------------------------------------------------------------------------


async def pages(host: FakeHost, method: str, key: str, **params: Any) -> list[list[Any]]:
    """Every page of a list."""
    found: list[list[Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await host.request(method, {**params, **cursor})
        found.append(page[key])
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def flat(found: list[list[Any]]) -> list[Any]:
    """The items of all pages."""
    return [item for page in found for item in page]


async def test_sessions_are_listed_newest_first_page_by_page(host: FakeHost) -> None:
    for number in range(5):
        folder = "/tmp" if number % 2 else "/"
        await host.create_session(sessionId=f"s{number}", model="scripted:echo", title=f"Title {number}", cwd=folder)
    await host.request("run", {"sessionId": "s1", "input": "touch"})

    found = await pages(host, "listSessions", "sessions", limit=2)

    assert [[info["sessionId"] for info in page] for page in found] == [["s1", "s4"], ["s3", "s2"], ["s0"]]
    assert found[0][0]["lastSeq"] > 0
    for query, expected in (({"cwd": "/tmp"}, ["s1", "s3"]), ({"query": "tItLe 3"}, ["s3"]), ({"archived": True}, [])):
        listed = await host.request("listSessions", query)
        assert [info["sessionId"] for info in listed["sessions"]] == expected


async def test_a_history_is_read_in_both_directions_and_by_source(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    for number in range(3):
        await session.run(f"m{number}")
    everything = await host.request("getHistory", {"sessionId": session.id})
    messages = everything["messages"]
    assert [message["source"]["type"] for message in messages] == ["external", "agent"] * 3
    assert all(message["messageId"] and message["runId"] and message["createdAt"] for message in messages)

    for limit in (1, 2, 5, 6, 7):
        up = await pages(host, "getHistory", "messages", sessionId=session.id, limit=limit)
        down = await pages(host, "getHistory", "messages", sessionId=session.id, limit=limit, order="desc")
        assert flat(up) == messages
        assert flat(down) == messages[::-1]
        assert all(len(page) == limit for page in up[:-1])
    for sources, expected in (
        (["external"], messages[::2]),
        (["agent"], messages[1::2]),
        (["default"], messages[1::2]),
    ):
        found = await pages(host, "getHistory", "messages", sessionId=session.id, sources=sources, limit=2)
        assert flat(found) == expected
    assert await pages(host, "getHistory", "messages", sessionId=session.id, sources=["nobody"]) == [[]]


# ---- closed ------------------------------------------------------------------------------------------------------


async def test_closing_in_mid_run_ends_the_run_first(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(store=store, env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says(T("Once"), Stall())
    run = session.start("go")
    await run.text_contains("Once")

    closing = host.ask("closeSession", {"sessionId": "s"})
    assert (await run.result())["status"] == "cancelled"
    assert await closing.result() == {}
    ended = [message.get("id") for message in host.messages if message.get("id") in (run.asked.id, closing.id)]
    assert ended == [run.asked.id, closing.id]
    assert await host.request("closeSession", {"sessionId": "s"}) == {}
    other = await start_host(store=store, env=model.environment)
    again = await other.resume_session("s")
    assert "recovered" not in again.opened
    assert await again.history() == [("user", "go")]


async def test_an_ephemeral_session_is_in_no_list_and_gone_when_it_is_closed(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="e", model="scripted:echo", ephemeral=True, state={"n": 1})
    assert (await session.run("hello"))["text"] == "hello"
    assert len(await session.history()) == 2
    assert (await session.state())["state"] == {"n": 1}
    assert (await host.request("listSessions"))["sessions"] == []
    again = await host.resume_session("e", replayFrom=START)
    assert again.opened["lastSeq"] == session.durable()[-1]["seq"]
    await host.request("closeSession", {"sessionId": "e"})
    assert (await host.refusal("getState", {"sessionId": "e"})).kind == "sessionNotFound"
    assert await host.create_session(sessionId="e", model="scripted:echo")


async def test_a_message_that_the_transcript_has_is_not_added_again(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["yes"])
    given = {"messageId": "m1", "role": "user", "content": "first"}
    await session.run([given])
    answer = (await host.request("getHistory", {"sessionId": session.id}))["messages"][1]["messageId"]
    await session.run([{**given, "content": "changed"}, {"role": "user", "content": "second"}])
    await session.run(
        [{"messageId": answer, "role": "user", "content": "forged"}, {"role": "user", "content": "third"}]
    )

    assert await session.history() == [
        ("user", "first"),
        ("assistant", "yes"),
        ("user", "second"),
        ("assistant", "yes"),
        ("user", "third"),
        ("assistant", "yes"),
    ]


async def test_many_sessions_run_at_once_each_with_its_own_order(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    model.otherwise(lambda request: [f"{request.last_user_text} {number} " for number in range(20)])
    sessions = [await host.create_session() for _ in range(8)]
    async with asyncio.timeout(20):
        results = await asyncio.gather(*(session.run(session.id) for session in sessions))
    for session, result in zip(sessions, results, strict=True):
        assert result["text"] == "".join(f"{session.id} {number} " for number in range(20))
        assert [event["seq"] for event in session.durable()] == list(range(1, result["lastSeq"] + 1))
