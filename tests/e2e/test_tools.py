"""Python tools of an agent, called over the wire: what the host sees, what the model gets back, what stays."""

import json
from pathlib import Path
from typing import Any

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.tool_plugins import ToolPlugins, tool_plugins
from tests.bench.wanted_calls import told, wants


async def start(start_host: Any, tmp_path: Path, model: FakeModel, **options: Any) -> tuple[Any, ToolPlugins]:
    plugins = tool_plugins(tmp_path, **options)
    host = await start_host(args=plugins.args, env=model.environment)
    return await host.create_session(), plugins


async def test_a_tool_is_offered_called_and_its_result_goes_back_to_the_model(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("add", {"a": 2, "b": 3}))
    model.says(T("Five."), F())

    result = await session.run("2 + 3?")

    offered = {tool["function"]["name"]: tool["function"] for tool in model.requests[0].body["tools"]}
    assert offered["add"]["description"] == "Add two numbers."
    assert offered["add"]["parameters"]["required"] == ["a", "b"]
    assert "ctx" not in offered["who"]["parameters"].get("properties", {})
    assert told(model) == [("c0", "5")]
    assert result["text"] == "Five."
    assert [message["role"] for message in result["messages"]] == ["assistant", "tool", "assistant"]


async def test_the_events_of_a_call_stand_in_their_fixed_order(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("remember", {"topic": "tea"}))
    model.says(T("Noted."), F())

    await session.run("tea")

    of_call = [e for e in session.events() if e["data"].get("callId") == "c0"]
    assert [e["type"] for e in of_call] == ["tool.started", "tool.delta", "tool.completed"]
    assert of_call[0]["data"]["status"] == "running"
    assert of_call[0]["data"]["arguments"] == {"topic": "tea"}
    assert of_call[1]["data"]["text"] == "keeping tea"
    assert of_call[2]["data"]["content"] == [{"type": "text", "text": "kept"}]
    assert (await session.state())["state"]["topic"] == "tea"


async def test_calls_of_one_answer_run_side_by_side_and_their_results_keep_the_order(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """Case 39."""
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("place_order", {"dish": "slow", "seconds": 0.3}), ("place_order", {"dish": "quick"}))
    model.says(T("ok"), F())

    await session.run("order")

    ended = [e["data"]["callId"] for e in session.events("tool.completed")]
    assert ended == ["c1", "c0"]
    assert told(model) == [("c0", "ordered slow"), ("c1", "ordered quick")]


async def test_what_goes_wrong_in_a_tool_is_told_to_the_model_in_fixed_words_and_nowhere_else(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """Case 36."""
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("fail", {}), ("add", {"a": "x"}), ("nothing", {}), ("say_no", {"why": "closed on Monday"}))
    model.says(T("Sorry."), F())

    result = await session.run("go")

    assert told(model) == [
        ("c0", "Error: Function failed."),
        ("c1", "Error: Argument parsing failed."),
        ("c2", 'Error: Requested function "nothing" not found.'),
        ("c3", "Error: closed on Monday"),
    ]
    assert result["status"] == "completed"
    assert [e["data"]["status"] for e in session.events("tool.completed")] == ["failed"] * 4
    assert "hunter2" not in json.dumps(session.host.messages)


async def test_details_of_a_failure_go_to_the_model_where_the_configuration_allows_it(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """Case 36."""
    session, _ = await start(start_host, tmp_path, model, config="detailed_tool_errors = true")
    wants(model, ("fail", {"text": "no such table"}))
    model.says(T("Sorry."), F())

    await session.run("go")

    assert told(model) == [("c0", "Error: Function failed. Exception: no such table")]


async def test_run_time_values_reach_tools_and_are_stored_nowhere(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """Cases 29 and 31."""
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("who", {}))
    model.says(T("ok"), F())

    result = await session.run(
        "who?",
        functionInvocationKwargs={"userId": "u-canary"},
        properties={"requestId": "r-1"},
        clientKwargs={"extraBody": {"user": "c-canary"}},
    )

    seen = json.loads(told(model)[0][1])
    assert seen == {
        "kwargs": {"userId": "u-canary"},
        "session": session.id,
        "properties": {"requestId": "r-1"},
    }
    assert model.requests[0].body["user"] == "c-canary"
    assert result["status"] == "completed"


async def test_a_tool_of_a_one_off_run_is_told_that_there_is_no_session(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """Case 32."""
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("remember", {"topic": "tea"}))
    model.says(T("ok"), F())

    await session.host.request("run", {"input": "tea"})

    assert told(model) == [("c0", "Error: There is no session to remember it in.")]


async def test_the_next_turn_holds_the_calls_of_the_last_one_paired(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    session, _ = await start(start_host, tmp_path, model)
    wants(model, ("add", {"a": 1, "b": 1}))
    model.says(T("Two."), F())
    model.says(T("Bye."), F())

    await session.run("1 + 1?")
    await session.run("bye")

    roles = [message["role"] for message in model.last_request.body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_the_tools_of_a_session_are_shown_by_get_state(start_host: Any, tmp_path: Path, model: FakeModel) -> None:
    session, _ = await start(start_host, tmp_path, model)

    state = await session.state(include=["tools"])

    assert {"name": "add", "source": "default"} in state["tools"]


async def test_a_call_after_which_the_model_fails_stays_in_the_history(
    start_host: Any, tmp_path: Path, model: FakeModel
) -> None:
    """What happened stays; `protocol.md` §6, second row."""
    session, plugins = await start(start_host, tmp_path, model)
    wants(model, ("place_order", {"dish": "soup"}))
    model.fails(400)
    model.says(T("ok"), F())

    error = await session.host.refusal("run", {"sessionId": session.id, "input": "soup, please"})
    await session.run("go on")

    assert error.kind == "modelBadRequest"
    assert plugins.effects == ["soup"]
    messages = model.last_request.body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[2]["content"] == "ordered soup"
