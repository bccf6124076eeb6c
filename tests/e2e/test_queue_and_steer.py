"""What a busy session does with more input: a queue in order, or steering into the run under way."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostRun, HostSession, RpcError


async def busy(start_host: Any, model: FakeModel, **options: Any) -> tuple[FakeHost, HostSession, HostRun]:
    """A session whose run has said `a` and goes on until it is cancelled."""
    host = await start_host(env=model.environment, **options)
    session = await host.create_session(sessionId="s")
    model.says(T("a"), Stall())
    run = session.start("first")
    await run.text_contains("a")
    return host, session, run


def said(model: FakeModel, request: int) -> list[str]:
    """The conversation that one model request held."""
    return [message["content"] for message in model.requests[request].messages if message["role"] != "system"]


async def gone(host: FakeHost, how: str) -> None:
    """The process ends: by `shutdown`, or killed."""
    if how == "kill":
        host.kill()
        await host.wait()
        return
    await host.request("shutdown")
    host.notify("exit")
    assert await host.wait() == 0


# ---- queue --------------------------------------------------------------------------------------------------------


async def test_queued_runs_wait_in_order_and_run_one_after_another(start_host: Any, model: FakeModel) -> None:
    """Case 28."""
    _, session, first = await busy(start_host, model)
    model.otherwise(lambda request: [f"re: {request.last_user_text}"])
    waiting = [session.start(text, whenBusy="queue") for text in ("second", "third")]
    for position, run in enumerate(waiting, start=1):
        assert (await run.event("run.queued"))["data"] == {"position": position}
    state = await session.state()
    assert state["queue"] == [{"runId": run.id, "position": place} for place, run in enumerate(waiting, start=1)]
    assert state["activeRun"]["runId"] == first.id
    assert (await session.state(runId=waiting[0].id))["run"]["status"] == "queued"

    await session.cancel(runId=first.id)

    assert [(await run.result())["text"] for run in waiting] == ["re: second", "re: third"]
    ends = [event["runId"] for event in session.events("run.completed")]
    assert ends == [first.id, *(run.id for run in waiting)]
    starts = [event["runId"] for event in session.events("run.started")]
    assert starts == ends
    assert [text for _, text in await session.history()] == ["first", "second", "re: second", "third", "re: third"]
    assert (await session.state())["queue"] == []


async def test_a_queue_has_a_limit_and_what_is_over_it_is_refused(start_host: Any, model: FakeModel) -> None:
    _, session, first = await busy(start_host, model)
    waiting = [session.start(f"{n}", whenBusy="queue") for n in range(16)]
    for run in waiting:
        await run.event("run.queued")

    with pytest.raises(RpcError) as refused:
        await session.run("one too many", whenBusy="queue")

    assert refused.value.kind == "overloaded"
    assert refused.value.data["retryAfterMs"] > 0
    for run in [*waiting, first]:
        await session.cancel(runId=run.id)
        assert (await run.result())["status"] == "cancelled"


async def test_the_queues_of_all_sessions_have_a_limit_together(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    config = tmp_path / "sidecar.toml"
    config.write_text("[limits]\nmax_queued_runs_total = 1\n", encoding="utf-8")
    host = await start_host(env=model.environment, args=("--config", str(config)))
    model.otherwise(lambda _: [T("a"), Stall()])
    one, two = await host.create_session(), await host.create_session()
    runs = [one.start("1"), two.start("2")]
    for run in runs:
        await run.text_contains("a")
    queued = one.start("3", whenBusy="queue")
    await queued.event("run.queued")

    with pytest.raises(RpcError) as refused:
        await two.run("4", whenBusy="queue")

    assert refused.value.kind == "overloaded"
    for session, run in ((one, queued), (one, runs[0]), (two, runs[1])):
        await session.cancel(runId=run.id)
        await run.result()


async def test_a_queued_run_that_is_cancelled_ends_once_and_leaves_nothing(start_host: Any, model: FakeModel) -> None:
    _, session, first = await busy(start_host, model)
    second, third = (session.start(text, whenBusy="queue") for text in ("second", "third"))
    await third.event("run.queued")

    assert await session.cancel(runId=second.id) == "cancelling"

    result = await second.result()
    assert (result["status"], result["stopReason"], result["messages"]) == ("cancelled", "cancelled", [])
    assert [event["type"] for event in second.events()] == ["run.queued", "run.completed"]
    assert result["lastSeq"] == second.events()[-1]["seq"]
    assert (await session.state())["queue"] == [{"runId": third.id, "position": 1}]
    assert await session.cancel(runId=second.id) == "alreadyFinished"
    model.says("done")
    await session.cancel(runId=first.id)
    assert (await third.result())["text"] == "done"
    assert said(model, 1) == ["first", "third"]
    assert [text for _, text in await session.history()] == ["first", "third", "done"]


async def test_a_message_that_an_earlier_run_has_brought_is_not_brought_again(
    start_host: Any, model: FakeModel
) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    one = {"messageId": "m1", "role": "user", "content": "one"}
    two = {"messageId": "m2", "role": "user", "content": "two"}
    model.says(T("a"), Stall(0.2), T("b"))
    model.says("c")
    first = session.start([one])
    await first.text_contains("a")

    second = session.start([one, two], whenBusy="queue")

    await second.result()
    assert said(model, 1) == ["one", "ab", "two"]
    assert [text for _, text in await session.history()] == ["one", "ab", "two", "c"]


@pytest.mark.parametrize("end", ["shutdown", "kill"])
async def test_every_accepted_run_has_exactly_one_end_after_the_process_has_gone(
    start_host: Any, model: FakeModel, store: str, end: str
) -> None:
    host, session, first = await busy(start_host, model, store=store)
    accepted = [session.start(text, whenBusy="queue", wait="accepted") for text in ("second", "third")]
    for position, run in enumerate(accepted, start=1):
        answer = await run.result()
        assert (answer["status"], answer["queuePosition"]) == ("queued", position)

    await gone(host, end)
    again = await start_host(store=store)
    resumed = await again.resume_session("s", replayFrom={"type": "start"})

    ids = [first.id, *(run.id for run in accepted)]
    states = [(await resumed.state(runId=run_id))["run"]["status"] for run_id in ids]
    assert states == ["interrupted"] * 3
    page = await again.request("getEvents", {"sessionId": "s", "afterSeq": 0, "types": ["run.completed"]})
    assert sorted(event["runId"] for event in page["events"]) == sorted(ids)
    assert [text for _, text in await resumed.history()] == ["first"]
    if end == "kill":
        assert sorted(resumed.opened["recovered"]["interruptedRuns"]) == sorted(ids)


# ---- steering -----------------------------------------------------------------------------------------------------


async def test_input_during_the_last_message_makes_one_more_model_call(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.3), T("b"))
    model.says("c")
    run = session.start("first")
    await run.text_contains("a")

    steered = await host.request("steerRun", {"sessionId": session.id, "expectedRunId": run.id, "input": "wait"})

    assert steered == {"runId": run.id, "accepted": True}
    result = await run.result()
    assert result["text"] == "abc"
    assert len(model.requests) == 2
    assert said(model, 1) == ["first", "ab", "wait"]
    assert [text for _, text in await session.history()] == ["first", "ab", "wait", "c"]
    roles = [event["data"]["role"] for event in run.events("message.completed")]
    assert roles == ["user", "assistant", "user", "assistant"]


async def test_a_run_that_steers_is_answered_like_the_one_it_joined(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.3), T("b"))
    model.says("c")
    run = session.start("first")
    await run.text_contains("a")
    joining = session.start("also", whenBusy="steer", runId="alias")

    result = await joining.result()

    assert result == await run.result()
    assert result["runId"] == run.id
    assert joining.events() == []
    again = await session.run("also", whenBusy="steer", runId="alias")
    assert again == result
    assert len(model.requests) == 2
    assert (await session.state(runId="alias"))["run"]["runId"] == run.id
    with pytest.raises(RpcError) as conflict:
        await session.run("something else", runId="alias")
    assert conflict.value.kind == "idempotencyConflict"


async def test_a_retry_of_a_steering_run_in_flight_does_not_steer_twice(start_host: Any, model: FakeModel) -> None:
    _, session, run = await busy(start_host, model)
    model.says("b")
    answers = [await session.start("also", whenBusy="steer", wait="accepted", runId="alias").result() for _ in range(2)]
    assert [(answer["runId"], answer["status"]) for answer in answers] == [(run.id, "running")] * 2

    assert await session.cancel(runId="alias") == "cancelling"

    assert (await run.result())["status"] == "cancelled"
    assert [text for _, text in await session.history()] == ["first", "also"]
    assert await session.cancel(runId="alias") == "alreadyFinished"
    assert (await session.run("go"))["text"] == "b"
    assert said(model, 1) == ["first", "also", "go"]


async def test_a_steered_message_with_an_id_is_taken_once(start_host: Any, model: FakeModel) -> None:
    host, session, run = await busy(start_host, model)
    message = {"messageId": "m1", "role": "user", "content": "also"}
    params = {"sessionId": session.id, "expectedRunId": run.id, "input": [message]}

    for _ in range(2):
        assert (await host.request("steerRun", params))["accepted"] is True

    await session.cancel()
    await run.result()
    assert [text for _, text in await session.history()] == ["first", "also"]


async def test_steering_needs_the_run_that_is_meant(start_host: Any, model: FakeModel) -> None:
    host, session, run = await busy(start_host, model)
    wrong = await host.refusal("steerRun", {"sessionId": "s", "expectedRunId": "another", "input": "x"})
    await session.cancel()
    await run.result()
    idle = await host.refusal("steerRun", {"sessionId": "s", "expectedRunId": run.id, "input": "x"})

    assert [wrong.kind, idle.kind] == ["runNotFound", "runNotFound"]


async def test_while_only_hooks_run_a_steering_run_is_queued(start_host: Any, model: FakeModel) -> None:
    """The last model call is over: the input is a run of its own, and is not lost."""
    host = await start_host(env=model.environment)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    session = await host.create_session(contextProviders=[{"type": "structured_memory", "config": {"schema": schema}}])
    model.says("answer")
    model.says(T("{"), Stall(0.4), T("}"))
    model.otherwise(lambda _: ["{}"])
    run = session.start("first")
    await model.received(2)

    refused = await host.request("steerRun", {"sessionId": session.id, "expectedRunId": run.id, "input": "x"})
    second = session.start("second", whenBusy="steer")

    assert refused["accepted"] is False
    assert (await second.event("run.queued"))["data"] == {"position": 1}
    assert (await run.result())["runId"] == run.id
    assert (await second.result())["runId"] == second.id


async def test_a_run_with_more_than_input_does_not_join_but_waits(start_host: Any, model: FakeModel) -> None:
    """Its context, options and format would be lost in another run."""
    _, session, first = await busy(start_host, model)
    model.otherwise(lambda _: ["{}"])
    waiting = [
        session.start("x", whenBusy="steer", **more)
        for more in (
            {"context": [{"uri": "a:b", "text": "bees"}]},
            {"options": {"temperature": 0.5}},
            {"responseFormat": {"type": "object"}},
        )
    ]
    for position, run in enumerate(waiting, start=1):
        assert (await run.event("run.queued"))["data"]["position"] == position

    await session.cancel(runId=first.id)

    assert [(await run.result())["runId"] for run in waiting] == [run.id for run in waiting]
    assert "bees" in model.requests[1].text
    assert model.requests[2].body["temperature"] == 0.5


@pytest.mark.parametrize("end", ["shutdown", "kill"])
async def test_acknowledged_steering_is_in_the_transcript_whatever_becomes_of_the_process(
    start_host: Any, model: FakeModel, store: str, end: str
) -> None:
    host, session, run = await busy(start_host, model, store=store)
    params = {"sessionId": "s", "expectedRunId": run.id, "input": "also"}
    assert (await host.request("steerRun", params))["accepted"] is True
    await session.start("and", whenBusy="steer", wait="accepted", runId="alias").result()
    await gone(host, end)

    again = await start_host(store=store, env=model.environment)
    resumed = await again.resume_session("s", replayFrom={"type": "start"})

    assert [text for _, text in await resumed.history()] == ["first", "also", "and"]
    model.says("ok")
    assert (await resumed.run("next"))["text"] == "ok"
    assert said(model, 1) == ["first", "also", "and", "next"]
    told = [event for event in resumed.events("message.completed") if event["runId"] == run.id]
    assert ["".join(block["text"] for block in event["data"]["content"]) for event in told] == ["first", "also", "and"]
    assert (await resumed.run("and", whenBusy="steer", runId="alias"))["status"] == "interrupted"


async def test_steering_that_has_joined_is_not_doubled_by_the_repair(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host = await start_host(env=model.environment, store=store)
    session = await host.create_session(sessionId="s")
    model.says(T("a"), Stall(0.3), T("b"))
    model.says(T("c"), Stall())
    run = session.start("first")
    await run.text_contains("a")
    await host.request("steerRun", {"sessionId": "s", "expectedRunId": run.id, "input": "also"})
    await run.text_contains("c")
    host.kill()
    await host.wait()

    again = await start_host(store=store)
    resumed = await again.resume_session("s")

    assert [text for _, text in await resumed.history()] == ["first", "ab", "also"]
    result = await resumed.run("first", runId=run.id)
    assert (result["status"], result["text"]) == ("interrupted", "ab")
