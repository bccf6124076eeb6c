"""The same `runId` again while its run is under way: the retry attaches, and nothing runs twice."""

from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError


async def test_a_retry_attaches_and_both_get_the_same_answer(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.3), T("b"))
    run = session.start("hello", runId="r")
    await run.text_contains("a")

    retries = [session.start("hello", runId="r"), session.start("hello", runId="r", whenBusy="queue", stream=False)]
    accepted = await session.run("hello", runId="r", wait="accepted")
    result = await run.result()

    assert (accepted["runId"], accepted["status"]) == ("r", "running")
    assert [await retry.result() for retry in retries] == [result, result]
    assert result["text"] == "ab"
    assert len(model.requests) == 1
    assert await session.history() == [("user", "hello"), ("assistant", "ab")]


async def test_requests_with_one_run_id_in_one_read_make_one_run(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("once")

    asked = [session.start("hello", runId="r") for _ in range(3)]

    results = [await run.result() for run in asked]
    assert results[0]["text"] == "once"
    assert results == [results[0]] * 3
    assert len(session.events("run.started")) == 1


async def test_another_payload_under_an_id_in_flight_is_a_conflict(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    run = session.start("hello", runId="r")
    await run.text_contains("a")

    with pytest.raises(RpcError) as conflict:
        await session.run("something else", runId="r")

    assert conflict.value.kind == "idempotencyConflict"
    await session.cancel()
    assert (await run.result())["status"] == "cancelled"


async def test_who_attends_a_run_may_stop_it(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    run = session.start("hello", runId="r")
    await run.text_contains("a")
    retry = session.start("hello", runId="r")

    retry.asked.cancel()

    assert (await retry.result())["status"] == "cancelled"
    assert (await run.result()) == (await retry.result())


async def test_a_retry_of_a_failing_run_gets_the_same_error(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.2), T("b"), T("c"))
    model.fails(400)
    await session.run("fine")
    runs = [session.start("hello", runId="r") for _ in range(2)]

    errors: list[RpcError] = []
    for run in runs:
        with pytest.raises(RpcError) as failure:
            await run.result()
        errors.append(failure.value)
    with pytest.raises(RpcError) as stored:
        await session.run("hello", runId="r")

    assert {error.data["errorId"] for error in [*errors, stored.value]} == {errors[0].data["errorId"]}
    assert len(model.requests) == 2


async def test_a_retry_of_a_queued_run_waits_with_it(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    model.says("b")
    first = session.start("one")
    await first.text_contains("a")
    second = session.start("two", runId="r", whenBusy="queue")
    await second.event("run.queued")

    accepted = await session.run("two", runId="r", whenBusy="queue", wait="accepted")
    retry = session.start("two", runId="r", whenBusy="queue")
    assert (accepted["status"], accepted["queuePosition"]) == ("queued", 1)
    await session.cancel(runId=first.id)

    assert (await second.result())["text"] == "b"
    assert await retry.result() == await second.result()
    assert len(session.events("run.queued")) == 1


async def test_a_one_off_run_is_not_run_twice_either(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    model.says("once")
    params = {"input": "hello", "runId": "one"}

    asked = [host.ask("run", params) for _ in range(2)]

    results = [await request.result() for request in asked]
    assert results[0] == results[1]
    assert results[0]["text"] == "once"
    assert await host.request("run", params) == results[0]


async def test_a_refused_run_uses_up_no_id(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    refused = await host.refusal(
        "run", {"sessionId": session.id, "runId": "r", "input": [{"role": "assistant", "content": "I said so"}]}
    )
    assert refused.kind == "invalidParams"

    assert (await session.run("hello", runId="r"))["text"] == "hello"
