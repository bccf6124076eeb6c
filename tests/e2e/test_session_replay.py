"""Resuming a session: the replay is the live stream again, whole or from a cursor, and nothing is ever doubled."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostSession, RpcError

START = {"type": "start"}


def plain(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events without what may differ between a live stream and a replay."""
    return [{key: value for key, value in event.items() if key not in ("prevSeq", "_meta")} for event in events]


async def replayed(session: HostSession) -> list[dict[str, Any]]:
    """Wait for the whole replay that was asked for, and give its events."""
    last = session.opened["lastSeq"]
    await session.host.until(lambda: any(event["seq"] == last for event in session.durable()))
    return plain(session.durable())


async def lively(host: FakeHost, model: FakeModel) -> HostSession:
    """A session with a run of each end."""
    session = await host.create_session(sessionId="s")
    model.says("fine", " indeed")
    await session.run("good", runId="r1")
    model.says(T("half"), Stall())
    cut = session.start("cut", runId="r2")
    await cut.text_contains("half")
    await session.cancel()
    await cut.result()
    model.fails(400)
    with pytest.raises(RpcError):
        await session.run("bad", runId="r3")
    model.calls("nothing", {"a": 1})
    model.says("sorry")
    await session.run("with a call", runId="r4")
    return session


async def test_a_replay_equals_the_live_stream_event_for_event(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(store=store, env=model.environment)
    session = await lively(host, model)
    live = session.durable()
    assert [event["seq"] for event in live] == list(range(1, len(live) + 1))
    host.kill()
    await host.wait()

    host = await start_host(store=store, env=model.environment)
    again = await host.resume_session("s", replayFrom=START)

    assert again.opened["lastSeq"] == live[-1]["seq"]
    assert again.opened["truncated"] is False
    assert await replayed(again) == plain(live)
    assert again.events() == again.durable()
    model.says("on")
    result = await again.run("on")
    assert again.durable()[len(live)]["seq"] == live[-1]["seq"] + 1
    assert result["lastSeq"] == again.durable()[-1]["seq"]


async def test_a_cursor_replays_what_came_after_it(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(store=store, env=model.environment)
    session = await lively(host, model)
    live, epoch = plain(session.durable()), session.opened["session"]["epoch"]
    for seq in (0, 1, 5, len(live) - 1, len(live)):
        before = len(session.events())
        cursor = {"type": "seq", "seq": seq, "epoch": epoch}
        await host.resume_session("s", replayFrom=cursor)
        await session.state()  # answered after the replay has begun
        await host.until(lambda seen=before, seq=seq: len(session.events()) == seen + len(live) - seq)
        assert plain(session.events()[before:]) == live[seq:]
    before = len(session.events())
    await host.resume_session("s", replayFrom={"type": "none"})
    await host.resume_session("s")
    for wrong in ({"seq": len(live) + 1, "epoch": epoch}, {"seq": 1, "epoch": "another"}):
        refused = await host.refusal("resumeSession", {"sessionId": "s", "replayFrom": {"type": "seq", **wrong}})
        assert refused.kind == "cursorExpired"
    assert len(session.events()) == before
    model.says("on")
    await session.run("on")


async def test_a_cursor_before_what_is_kept_is_told_and_the_rest_is_replayed(start_host: Any, tmp_path: Path) -> None:
    config = tmp_path / "few.toml"
    config.write_text("[store]\nkeep_event_runs = 2\n")
    host = await start_host(args=("--config", str(config)))
    session = await host.create_session(model="scripted:echo")
    for number in range(4):
        await session.run(f"m{number}", runId=f"r{number}")
    live = [event for event in plain(session.durable()) if event["runId"] in ("r2", "r3")]
    for cursor in (START, {"type": "seq", "seq": 1, "epoch": session.opened["session"]["epoch"]}):
        before = len(session.events())
        again = await host.resume_session(session.id, replayFrom=cursor)
        assert again.opened["truncated"] is True
        await host.until(lambda seen=before: len(session.events()) == seen + len(live))
        assert plain(session.events()[before:]) == live
    assert len(await session.history()) == 8


async def test_the_chain_holds_for_a_client_that_opted_out_of_what_came_last(start_host: Any) -> None:
    unwanted = ["run.completed", "run.started", "message.delta"]
    host = await start_host(initialize={"initializationOptions": {"sidecar": {"optOutEvents": unwanted}}})
    session = await host.create_session(model="scripted:echo")
    for _ in range(2):
        await session.run("hello")
        await host.resume_session(session.id, replayFrom=START)
        await session.run("hello")  # the bench holds each `prevSeq` against what was sent before
    assert [event["seq"] for event in session.durable()].count(session.durable()[0]["seq"]) == 3
    assert not session.events(*unwanted)


async def test_resuming_an_open_session_doubles_nothing(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda request: ["a", "b", "c"])
    await session.run("one")
    first = [event["type"] for event in session.events()]
    for _ in range(3):
        await host.resume_session(session.id)
    await session.run("two")

    assert [event["type"] for event in session.events()] == first * 2
    seqs = [event["seq"] for event in session.durable()]
    assert seqs == sorted(set(seqs))


async def test_resuming_in_mid_run_goes_on_without_a_gap_or_a_repeat(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.3), T("b"))
    run = session.start("go")
    await run.text_contains("a")
    seen = len(session.durable())

    again = await host.resume_session(session.id, replayFrom=START)
    assert again.opened["activeRun"]["runId"] == run.id
    assert again.opened["session"]["status"] == "running"
    assert again.opened["lastSeq"] == seen
    assert (await run.result())["text"] == "ab"

    events = session.durable()
    assert plain(events[seen : 2 * seen]) == plain(events[:seen])
    assert [event["seq"] for event in events[seen:]] == list(range(1, len(events) - seen + 1))
    assert run.text() == "ab"
