"""`deleteSession`: what runs is ended, all is removed, and to delete again is no error."""

from typing import Any

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost


def closings(host: FakeHost) -> list[dict[str, Any]]:
    """The params of `session/closed` so far."""
    return [message["params"] for message in host.messages if message.get("method") == "session/closed"]


async def test_a_deleted_session_is_gone_and_its_id_is_free(start_host: Any, store: str) -> None:
    host = await start_host(store=store, check=False)  # one run id, used by two sessions of one name
    session = await host.create_session(sessionId="s", model="scripted:echo", state={"k": 1})
    await session.run("hello", runId="r")

    for _ in range(2):
        assert await host.request("deleteSession", {"sessionId": "s"}) == {}

    assert closings(host) == [{"sessionId": "s", "reason": "deleted"}]
    for method in ("getState", "getHistory", "exportSession", "resumeSession", "forkSession"):
        assert (await host.refusal(method, {"sessionId": "s"})).kind == "sessionNotFound", method
    assert (await host.refusal("run", {"sessionId": "s", "input": "x"})).kind == "sessionNotFound"
    assert (await host.request("listSessions"))["sessions"] == []
    anew = await host.create_session(sessionId="s", model="scripted:echo", title="another payload")
    assert (await anew.state())["state"] == {}
    assert (await anew.run("again", runId="r"))["text"] == "again"


async def test_deleting_what_never_was_is_no_error(host: FakeHost) -> None:
    assert await host.request("deleteSession", {"sessionId": "nobody"}) == {}
    assert closings(host) == []


async def test_runs_of_every_kind_end_before_their_session_is_deleted(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    running = session.start("one")
    await running.text_contains("a")
    queued = session.start("two", whenBusy="queue")
    joined = session.start("three", whenBusy="steer")
    retry = session.start("one", runId=running.id)
    await queued.event("run.queued")

    deletion = host.ask("deleteSession", {"sessionId": session.id})
    behind = host.ask("run", {"sessionId": session.id, "input": "too late"})

    assert await deletion.result() == {}
    for run in (running, queued, joined, retry):
        assert (await run.result())["status"] == "cancelled"
    assert len(session.events("run.completed")) == 2
    assert (await behind.message())["error"]["data"]["kind"] == "sessionNotFound"
    order = [message.get("method") for message in host.messages]
    assert order.index("session/closed") > max(i for i, method in enumerate(order) if method == "run/event")


async def test_a_stored_session_is_deleted_without_being_opened(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    await host.create_session(sessionId="s")
    await host.request("closeSession", {"sessionId": "s"})

    await host.request("deleteSession", {"sessionId": "s"})

    assert [closed["reason"] for closed in closings(host)] == ["closed", "deleted"]
    assert (await host.refusal("getState", {"sessionId": "s"})).kind == "sessionNotFound"


async def test_a_session_of_a_living_process_is_locked_and_of_a_dead_one_is_not(start_host: Any, store: str) -> None:
    owner, other = await start_host(store=store), await start_host(store=store)
    session = await owner.create_session(sessionId="s", model="scripted:echo")

    refused = await other.refusal("deleteSession", {"sessionId": "s"})

    assert refused.kind == "sessionLocked"
    assert (await session.run("still here"))["text"] == "still here"
    owner.kill()
    await owner.wait()
    await other.request("deleteSession", {"sessionId": "s"})
    assert (await other.refusal("getState", {"sessionId": "s"})).kind == "sessionNotFound"


async def test_who_waits_for_events_of_a_deleted_session_is_told_at_once(host: FakeHost) -> None:
    session = await host.create_session(ephemeral=True)
    waiting = host.ask("getEvents", {"sessionId": session.id, "afterSeq": 0, "waitMs": 600_000})
    await session.state()

    await host.request("deleteSession", {"sessionId": session.id})

    assert (await waiting.message())["error"]["data"]["kind"] == "sessionNotFound"
