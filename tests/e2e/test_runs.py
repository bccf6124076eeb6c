"""Runs over the wire: order, ends, cancel, time limit, idempotency."""

import pytest

from tests.bench.fake_model import TC, F, FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError


def at(model: FakeModel) -> dict[str, str]:
    """The environment of a sidecar that uses the fake model."""
    return {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "fake"}


async def test_a_run_streams_and_is_answered_after_its_last_event(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")

    result = await session.run("hello there")

    assert result["text"] == "hello there"
    assert result["status"] == "completed"
    assert result["stopReason"] == "endTurn"
    events = session.events()
    assert events[0]["type"] == "run.started"
    assert events[-1]["type"] == "run.completed"
    assert events[-1]["seq"] == result["lastSeq"]
    assert host.messages[-1]["result"] == result
    assert "".join(e["data"]["text"] for e in session.events("message.delta")) == "hello there"
    assert [event["seq"] for event in session.durable()] == list(range(1, result["lastSeq"] + 1))


async def test_history_feeds_the_next_run(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.says("sure")
    await session.run("remember me")
    model.says("yes")
    await session.run("do you?")

    assert [m["content"] for m in model.last_request.messages if m["role"] != "system"] == [
        "remember me",
        "sure",
        "do you?",
    ]
    assert await session.history() == [
        ("user", "remember me"),
        ("assistant", "sure"),
        ("user", "do you?"),
        ("assistant", "yes"),
    ]


async def test_cancel_ends_the_run_and_frees_the_session(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.says(T("Once upon"), Stall())
    run = session.start("tell me a story")
    await run.text_contains("Once")

    assert await session.cancel() == "cancelling"

    result = await run.result()
    assert (result["status"], result["stopReason"]) == ("cancelled", "cancelled")
    assert result["messages"][-1]["partial"] is True
    assert result["text"] == "Once upon"
    assert await session.history() == [("user", "tell me a story")]
    model.says("hello")
    assert (await session.run("hi"))["text"] == "hello"


async def test_a_failed_run_leaves_the_history_as_it_was(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.says(T("Your to"), F("stop"))
    await session.run("first")
    model.fails(400)

    with pytest.raises(RpcError) as failure:
        await session.run("second")

    assert failure.value.kind == "modelBadRequest"
    completed = session.events("run.completed")[-1]["data"]
    assert completed["status"] == "failed"
    assert completed["error"]["data"]["errorId"] == failure.value.data["errorId"]
    assert await session.history() == [("user", "first"), ("assistant", "Your to")]


async def test_the_same_run_id_gives_the_same_answer_also_after_a_restart(start_host, store: str) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model="scripted:echo")
    first = await session.run("hello", runId="r1")
    assert await session.run("hello", runId="r1") == first
    with pytest.raises(RpcError) as conflict:
        await session.run("other", runId="r1")
    assert conflict.value.kind == "idempotencyConflict"
    host.kill()
    await host.wait()

    again = await start_host(store=store)
    session = await again.resume_session("s")

    assert await session.run("hello", runId="r1") == first
    assert session.events() == []


async def test_an_unknown_tool_call_is_answered_and_the_run_goes_on(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.says(TC(0, "c1", "rm", "{}"), F("tool_calls"))
    model.says("sorry")

    result = await session.run("go")

    assert result["text"] == "sorry"
    assert model.last_request.tool_results == {"c1": 'Error: Requested function "rm" not found.'}


async def test_a_time_limit_ends_the_run(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.hangs()

    result = await session.run("hi", timeoutMs=200)

    assert (result["status"], result["stopReason"]) == ("cancelled", "timeout")


async def test_a_one_off_run_needs_no_session(host: FakeHost) -> None:
    asked = host.ask("run", {"input": "hi", "runId": "one", "agent": {"model": "scripted:echo"}})
    result = await asked.result()

    assert result["text"] == "hi"
    started = host.events(result["sessionId"], "run.started")[0]
    assert started["_meta"] == {"requestId": asked.id}
    state = await host.request("getState", {"runId": "one"})
    assert state["run"]["status"] == "completed"
    assert (await host.request("listSessions"))["sessions"] == []


async def test_a_second_run_on_a_busy_session_is_refused(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    model.says(T("a"), Stall())
    run = session.start("one")
    await run.text_contains("a")

    with pytest.raises(RpcError) as busy:
        await session.run("two")

    assert busy.value.kind == "sessionBusy"
    assert busy.value.data["activeRunId"] == run.id
    await session.cancel()
    await run.result()


async def test_structured_output_is_parsed(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model.says('{"n": 3}')
    model.says('{"n": "three"}')

    good = await session.run("count", responseFormat=schema)
    bad = await session.run("count", responseFormat=schema)

    assert good["value"] == {"n": 3}
    assert "value" not in bad
    assert "n" in bad["valueError"]
