"""Tools that the host carries out: asked over the wire, told by events, and never in the way of a run's end."""

from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import LATER, FakeHost, Refuses
from tests.bench.wanted_calls import told, wants

FORECAST = {
    "name": "forecast",
    "description": "Tell the weather.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def start(start_host: Any, model: FakeModel, **params: Any) -> Any:
    host: FakeHost = await start_host(env=model.environment)
    return await host.create_session(**({"tools": [FORECAST]} | params))


async def test_a_host_s_tool_is_offered_called_and_its_result_goes_to_the_model(
    start_host: Any, model: FakeModel
) -> None:
    session = await start(start_host, model)
    session.host.serves["host/callTool"] = lambda params: {"content": f"rain in {params['arguments']['city']}"}
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("It rains."), F())

    result = await session.run("weather?", functionInvocationKwargs={"token": "t0p"})

    (asked,) = session.host.asked("host/callTool")
    assert asked["params"]["kwargs"] == {"token": "t0p"}
    assert {name: asked["params"][name] for name in ("sessionId", "runId", "callId", "name", "arguments")} == {
        "sessionId": session.id,
        "runId": result["runId"],
        "callId": "c0",
        "name": "forecast",
        "arguments": {"city": "Bern"},
    }
    assert model.requests[0].body["tools"][0]["function"]["description"] == "Tell the weather."
    assert told(model) == [("c0", "rain in Bern")]
    assert result["text"] == "It rains."
    kinds = [e["type"] for e in session.events() if e["type"].startswith(("tool.", "request."))]
    assert kinds == ["tool.started", "request.opened", "request.resolved", "tool.completed"]
    opened, resolved = session.events("request.opened", "request.resolved")
    assert "kwargs" not in opened["data"]["payload"]
    assert resolved["data"] == {
        "requestId": opened["data"]["requestId"], "outcome": "completed", "by": "client",
    }  # fmt: skip


async def test_calls_of_one_answer_are_asked_at_the_same_time(start_host: Any, model: FakeModel) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}), ("forecast", {"city": "Ulm"}))
    model.says(T("done"), F())
    run = session.start("weather?")
    first, second = await session.host.until(
        lambda: session.host.asked("host/callTool")[1:] and session.host.asked("host/callTool")
    )

    session.host.reply(second, {"content": "two"})
    session.host.reply(first, {"content": [{"type": "text", "text": "one"}], "structuredContent": {"n": 1}})

    await run.result()
    assert told(model) == [("c0", "one"), ("c1", "two")]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"content": "no such city", "isError": True}, "no such city"),
        (Refuses(-32601, "no"), "Error: the host does not serve this"),
        (Refuses(-1, "broken"), "Error: the host failed: broken"),
        ({"content": 5}, "Error: the host's answer has the wrong shape"),
        (None, "Error: the host's answer has the wrong shape: content"),
        ({}, "Error: the host's answer has the wrong shape: content"),
        ({"content": "x", "isError": "no"}, "Error: the host's answer has the wrong shape: isError"),
        (
            {"content": [{"type": "functionCall", "callId": "c", "name": "n", "arguments": {}}]},
            "Error: the host's answer has the wrong shape: content: a result holds no 'functionCall'",
        ),
    ],
)
async def test_what_goes_wrong_at_the_host_is_an_error_result(
    start_host: Any, model: FakeModel, answer: Any, text: str
) -> None:
    session = await start(start_host, model)
    session.host.serves["host/callTool"] = lambda params: answer
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("sorry"), F())

    assert (await session.run("weather?"))["text"] == "sorry"

    assert told(model)[0][1].startswith(text)


@pytest.mark.parametrize(
    "answer",
    [
        '{"jsonrpc":"2.0","id":"ID","result":{"content":"x","structuredContent":{"score":NaN}}}',
        '{"jsonrpc":"2.0","id":"ID","result":{"content":"x","structuredContent":{"n":1180591620717411303424}}}',
        '{"jsonrpc":"2.0","id":"ID","result":{"content":"x","structuredContent":' + "[" * 300 + "]" * 300 + "}}",
        '{"jsonrpc":"2.0","id":"ID"}',
        '{"jsonrpc":"1.0","id":"ID","result":{"content":"x"}}',
        '{"id":"ID","result":{"content":"x"}}',
    ],
    ids=["NaN", "2^70", "deep", "nothing", "1.0", "no version"],
)
async def test_an_answer_that_cannot_be_read_fails_the_call_at_once(
    start_host: Any, model: FakeModel, answer: str
) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("sorry"), F())
    run = session.start("weather?")
    (asked,) = await session.host.until(lambda: session.host.asked("host/callTool"))

    session.host.write(answer.replace("ID", asked["id"]).encode() + b"\n")

    assert (await run.result())["text"] == "sorry"
    assert told(model)[0][1].startswith("Error: the host failed")


async def test_a_call_has_the_time_that_its_tool_says(start_host: Any, model: FakeModel) -> None:
    session = await start(start_host, model, tools=[FORECAST | {"timeoutMs": 50}])
    session.host.serves["host/callTool"] = lambda params: LATER
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("sorry"), F())

    await session.run("weather?")

    assert told(model) == [("c0", "Error: the host has not answered within 50 ms")]
    (asked,) = session.host.asked("host/callTool")
    assert asked["params"]["deadlineMs"] == 50
    (opened,) = session.events("request.opened")
    assert "deadline" in opened["data"]
    assert session.events("request.resolved")[0]["data"]["by"] == "timeout"


async def test_a_host_tells_how_its_tool_gets_on_and_what_it_gives_may_be_an_image(
    start_host: Any, model: FakeModel
) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("nice"), F())
    run = session.start("weather?")
    (asked,) = await session.host.until(lambda: session.host.asked("host/callTool"))
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    token = asked["params"]["requestId"]
    session.host.notify("$/progress", {"token": token, "value": {"kind": "report", "message": "looking out"}})
    session.host.notify("$/progress", {"token": token, "value": 5})
    session.host.notify("$/progress", {"token": "req_other", "value": "nobody's"})
    session.host.reply(asked, {"content": [{"type": "text", "text": "sunny"}, image]})

    await run.result()
    assert [e["data"]["text"] for e in session.events("tool.delta")] == ["looking out"]
    assert session.events("tool.completed")[0]["data"]["content"] == [{"type": "text", "text": "sunny"}, image]
    session.host.notify("$/progress", {"token": token, "value": "too late"})
    await session.host.request("getState")
    assert len(session.events("tool.delta")) == 1


async def test_a_cancelled_run_takes_its_calls_back_and_late_answers_are_ignored(
    start_host: Any, model: FakeModel
) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}))
    run = session.start("weather?")
    (asked,) = await session.host.until(lambda: session.host.asked("host/callTool"))
    assert (await session.host.request("getState", {"sessionId": session.id}))["pendingRequests"][0][
        "kind"
    ] == "hostTool"

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    taken_back = [m["params"]["id"] for m in session.host.messages if m.get("method") == "$/cancelRequest"]
    assert taken_back == [asked["id"]]
    assert session.events("request.resolved")[0]["data"]["by"] == "cancel"
    session.host.reply(asked, {"content": "late"})
    state = await session.host.request("getState", {"sessionId": session.id})
    assert state["pendingRequests"] == []
    assert "late" not in str(session.events())


async def test_resolve_request_answers_in_place_of_the_host_s_own_answer(start_host: Any, model: FakeModel) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("done"), F())
    run = session.start("weather?")
    (asked,) = await session.host.until(lambda: session.host.asked("host/callTool"))
    answer = {"requestId": asked["params"]["requestId"], "result": {"content": "sun"}}

    first = await session.host.request("resolveRequest", answer)
    await run.result()
    again = await session.host.request("resolveRequest", answer)

    assert (first["status"], again["status"]) == ("resolved", "alreadyResolved")
    assert told(model) == [("c0", "sun")]
    unknown = await session.host.request("resolveRequest", {"requestId": "req_none", "result": {}})
    assert unknown["status"] == "unknown"


async def test_tools_are_supplied_again_and_may_change_on_the_open_session(
    start_host: Any, store: str, model: FakeModel
) -> None:
    host = await start_host(env=model.environment, store=store)
    session = await host.create_session(sessionId="s", tools=[FORECAST])
    other = FORECAST | {"name": "tide"}

    await host.resume_session("s", tools=[other])
    model.says(T("a"), F())
    await session.run("x")
    await host.resume_session("s")
    model.says(T("b"), F())
    await session.run("y")

    names = [[tool["function"]["name"] for tool in request.body["tools"]] for request in model.requests]
    assert names == [["tide"], ["tide"]]
    listed = await host.request("listTools", {"sessionId": "s"})
    assert [(tool["name"], tool["source"]) for tool in listed["items"]] == [("tide", "host")]
    host.kill()
    await host.wait()

    later = await start_host(env=model.environment, store=store)
    resumed = await later.resume_session("s")

    assert [w["kind"] for w in resumed.opened["warnings"]] == ["hostPartsMissing"]
    assert "'tide'" in resumed.opened["warnings"][0]["message"]
    model.says(T("c"), F())
    await resumed.run("z")
    assert "tools" not in model.last_request.body
    assert "warnings" not in (await later.resume_session("s", tools=[other])).opened


async def test_when_the_input_has_ended_a_host_s_tool_fails_at_once(start_host: Any, model: FakeModel) -> None:
    session = await start(start_host, model)
    wants(model, ("forecast", {"city": "Bern"}))
    model.says(T("alone"), F())
    run = session.start("weather?")
    await session.host.until(lambda: session.host.asked("host/callTool"))

    session.host.hang_up()

    assert (await run.result())["text"] == "alone"
    assert told(model) == [("c0", "Error: the host has gone")]
    assert session.events("request.resolved")[0]["data"]["by"] == "disconnect"


async def test_a_bad_tool_is_refused_when_it_is_supplied(start_host: Any) -> None:
    host = await start_host()
    twice = await host.refusal("createSession", {"tools": [FORECAST, FORECAST]})
    broken = await host.refusal("createSession", {"tools": [FORECAST | {"inputSchema": {"type": 5}}]})
    elsewhere = await host.refusal("createSession", {"tools": [FORECAST | {"inputSchema": {"$ref": "http://x/y"}}]})

    assert [error.kind for error in (twice, broken, elsewhere)] == ["configInvalid"] * 3
    assert "forecast" in str(broken)
