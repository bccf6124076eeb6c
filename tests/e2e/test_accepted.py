"""`wait: accepted`: the answer comes when the run is stored, before its first event."""

from typing import Any

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost


def order(host: FakeHost, request_id: int | str, run_id: str) -> list[str]:
    """What came for one run: `answer` and the types of its durable events, in the order of arrival."""
    found: list[str] = []
    for message in host.messages:
        event = message.get("params", {})
        if message.get("id") == request_id and "method" not in message:
            found.append("answer")
        elif message.get("method") == "run/event" and event.get("runId") == run_id and not event.get("ephemeral"):
            found.append(event["type"])
    return found


async def test_the_answer_precedes_run_started(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    run = session.start("hello", wait="accepted")

    answer = await run.result()

    assert (answer["runId"], answer["status"]) == (run.id, "running")
    await run.event("run.completed")
    assert order(host, run.asked.id, run.id)[:2] == ["answer", "run.started"]
    started = run.events("run.started")[0]
    assert started["seq"] <= answer["lastSeq"] < run.events("run.completed")[0]["seq"]
    assert (await session.run("hello", runId=run.id))["text"] == "hello"


async def test_the_answer_of_a_queued_run_precedes_its_events(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    model.says("b")
    first = session.start("one")
    await first.text_contains("a")
    second = session.start("two", wait="accepted", whenBusy="queue")

    answer = await second.result()
    await session.cancel(runId=first.id)
    await second.event("run.completed")

    assert {**answer, "lastSeq": 0} == {"runId": second.id, "status": "queued", "queuePosition": 1, "lastSeq": 0}
    assert order(host, second.asked.id, second.id)[:3] == ["answer", "run.queued", "run.started"]
    assert sum(message.get("id") == second.asked.id for message in host.messages) == 1


async def test_a_failure_after_the_answer_is_told_by_the_event_alone(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.fails(400)
    run = session.start("hello", wait="accepted")

    assert (await run.result())["status"] == "running"

    completed = await run.event("run.completed")
    assert completed["data"]["status"] == "failed"
    assert completed["data"]["error"]["data"]["kind"] == "modelBadRequest"
    await session.state()
    assert sum(message.get("id") == run.asked.id for message in host.messages) == 1
    assert await session.history() == []


async def test_the_request_s_id_is_free_again_while_its_run_goes_on(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    params = {"sessionId": session.id, "input": "x", "runId": "r", "wait": "accepted"}
    await host.ask("run", params, request_id="mine").result()

    assert "server" in await host.ask("getState", {}, request_id="mine").result()

    await session.cancel()
    await host.until(lambda: session.events("run.completed"))


async def test_a_one_off_run_can_be_accepted_too(host: FakeHost) -> None:
    answer = await host.request(
        "run", {"input": "hi", "runId": "one", "wait": "accepted", "agent": {"model": "scripted:echo"}}
    )

    assert (answer["runId"], answer["status"]) == ("one", "running")
    await host.until(lambda: host.events(None, "run.completed"))
    assert (await host.request("getState", {"runId": "one"}))["run"]["status"] == "completed"
