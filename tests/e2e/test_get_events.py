"""`getEvents`: the durable events after a cursor, equal to what was sent live, and long polling for the next ones."""

import asyncio
from pathlib import Path
from typing import Any

from tests.bench.fake_model import TC, FakeModel, Stall, T, Think
from tests.bench.host import FakeHost, HostSession

LONG = 600_000
"""A wait that would fail the test if it were waited for."""


async def page(host: FakeHost, session_id: str, after: int = 0, **params: Any) -> dict[str, Any]:
    """`getEvents`."""
    return await host.request("getEvents", {"sessionId": session_id, "afterSeq": after, **params})


def live(session: HostSession) -> list[dict[str, Any]]:
    """What was sent, without what belongs to one client's stream."""
    return [
        {name: value for name, value in event.items() if name not in ("prevSeq", "_meta")}
        for event in session.durable()
    ]


async def test_events_are_what_was_sent_live(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(env=model.environment, store=store)
    session = await host.create_session(sessionId="s")
    model.says(Think("hm"), T("a"), TC(0, "c", "nothing", "{}"))
    model.says("b")
    await session.run("one")
    model.fails(400)
    await session.start("two").asked.message()
    model.says(T("c"), Stall())
    run = session.start("three")
    await run.text_contains("c")
    queued = session.start("four", whenBusy="queue")
    await queued.event("run.queued")
    await session.cancel(runId=queued.id)
    await session.cancel(runId=run.id)
    await run.result()

    found = await page(host, "s", limit=1000)

    sent = live(session)
    assert found["events"] == sent
    assert (found["lastSeq"], found["firstSeq"], found["hasMore"], found["status"]) == (len(sent), 1, False, "ok")
    other = await start_host(store=store)
    assert await page(other, "s", limit=1000) == found
    middle = await page(host, "s", 5)
    assert middle["events"] == sent[5:]


async def test_pages_follow_each_other_without_a_gap(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    for text in "abc":
        await session.run(text)
    collected: list[dict[str, Any]] = []
    after, more = 0, True
    while more:
        found = await page(host, session.id, after, limit=4)
        assert len(found["events"]) <= 4
        collected += found["events"]
        after, more = found["lastSeq"], found["hasMore"]

    assert collected == live(session)


async def test_a_choice_of_types_is_read_on_until_there_is_one(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    for text in "abc":
        await session.run(text)

    found = await page(host, session.id, types=["run.completed"], limit=2)

    ends = [event for event in live(session) if event["type"] == "run.completed"]
    collected = found["events"]
    while found["hasMore"]:
        found = await page(host, session.id, found["lastSeq"], types=["run.completed"], limit=2)
        collected += found["events"]
    assert collected == ends
    assert found["lastSeq"] == ends[-1]["seq"]


async def test_a_waiting_request_is_answered_when_something_happens(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    waiting = host.ask("getEvents", {"sessionId": session.id, "afterSeq": 0, "waitMs": LONG})
    await session.state()
    assert not waiting.answered

    await session.run("hello")

    found = await waiting.result()
    assert found["events"][0]["type"] == "run.started"


async def test_a_request_that_waits_for_a_type_is_not_woken_by_others(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    params = {"sessionId": session.id, "afterSeq": 0, "waitMs": LONG, "types": ["state.changed"]}
    waiting = host.ask("getEvents", params)
    await session.run("hello")
    assert not waiting.answered

    await host.request("updateSession", {"sessionId": session.id, "statePatch": {"k": 1}})

    found = await waiting.result()
    assert [event["type"] for event in found["events"]] == ["state.changed"]
    assert found["lastSeq"] == found["events"][0]["seq"]


async def test_a_wait_ends_with_its_time_or_its_cancellation(host: FakeHost) -> None:
    session = await host.create_session()
    clock = asyncio.get_running_loop()
    begun = clock.time()

    found = await page(host, session.id, waitMs=150)

    assert clock.time() - begun >= 0.15
    assert (found["events"], found["lastSeq"], found["status"]) == ([], 0, "ok")
    waiting = host.ask("getEvents", {"sessionId": session.id, "afterSeq": 0, "waitMs": LONG})
    waiting.cancel()
    assert (await waiting.message())["error"]["data"]["kind"] == "requestCancelled"


async def test_another_process_s_events_can_be_waited_for(start_host: Any, store: str) -> None:
    owner, other = await start_host(store=store), await start_host(store=store)
    session = await owner.create_session(sessionId="s", model="scripted:echo")
    waiting = other.ask("getEvents", {"sessionId": "s", "afterSeq": 0, "waitMs": LONG})

    await session.run("hello")

    assert (await waiting.result())["events"][0] == live(session)[0]


async def test_only_the_last_runs_events_are_kept(start_host: Any, tmp_path: Path) -> None:
    config = tmp_path / "sidecar.toml"
    config.write_text("[store]\nkeep_event_runs = 2\n", encoding="utf-8")
    host = await start_host(args=("--config", str(config)))
    session = await host.create_session(model="scripted:echo")
    for number in (1, 2, 3):
        await session.run(f"{number}", runId=f"r{number}")

    found = await page(host, session.id, limit=1000)

    kept = [event for event in live(session) if event["runId"] != "r1"]
    assert found["status"] == "truncated"
    assert found["firstSeq"] == kept[0]["seq"]
    assert found["events"] == kept
    assert (await page(host, session.id, found["firstSeq"] - 1))["status"] == "ok"
    assert len(await session.history()) == 6
    assert (await session.run("1", runId="r1"))["text"] == "1"


async def test_a_cursor_of_another_epoch_gets_no_events(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    await session.run("hello")
    epoch = (await session.state())["epoch"]

    wrong = await page(host, session.id, 1, epoch="another", waitMs=LONG)
    right = await page(host, session.id, 1, epoch=epoch)

    assert (wrong["status"], wrong["events"], wrong["hasMore"]) == ("epochChanged", [], False)
    assert (right["status"], right["events"]) == ("ok", live(session)[1:])


async def test_a_session_that_is_not_there_is_told(host: FakeHost) -> None:
    assert (await host.refusal("getEvents", {"sessionId": "x", "afterSeq": 0})).kind == "sessionNotFound"
    assert (await host.refusal("getEvents", {"sessionId": "x", "afterSeq": -1})).kind == "invalidParams"
