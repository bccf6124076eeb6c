"""`agent-sidecar acp`: an editor that speaks the Agent Client Protocol talks with an agent, and finds its sessions."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.acp_agent import BEGINNING, agents, opening, selected
from tests.bench.acp_client import CAPABLE, Acp, AcpError, joined, prompt
from tests.bench.fake_model import F, FakeModel, T
from tests.e2e.cli_process import Cli


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts agents in one folder, with one store."""
    async with agents(tmp_path) as starting:
        yield starting


@pytest.fixture
async def acp(start: Callable[..., Any]) -> Acp:
    """An agent whose client can ask its user everything."""
    return await start(capabilities=CAPABLE)


async def test_a_prompt_is_streamed_and_ends_with_its_reason(acp: Acp) -> None:
    session = await acp.new_session()

    answer = await acp.prompt(session, "hello")

    assert answer["stopReason"] == "end_turn"
    assert answer["_meta"]["sidecar"]["usage"]["outputTokens"] > 0
    chunks = acp.of_kind("agent_message_chunk")
    assert [chunk["content"]["text"] for chunk in chunks] == ["You said: ", "hello"]
    assert len({chunk["messageId"] for chunk in chunks}) == 1
    assert acp.of_kind("user_message_chunk") == []
    assert await acp.end() == 0


async def test_initialize_says_what_there_is_and_version_1_whatever_was_asked_for(start: Callable[..., Any]) -> None:
    acp = await start(initialize=False)

    answer = await acp.request("initialize", {"protocolVersion": 7})

    assert answer["protocolVersion"] == 1
    capabilities = answer["agentCapabilities"]
    assert capabilities["loadSession"] is True
    assert capabilities["promptCapabilities"] == {"image": True, "audio": True, "embeddedContext": True}
    assert capabilities["mcpCapabilities"] == {"http": False, "sse": False}
    assert set(capabilities["sessionCapabilities"]) == {"list", "resume", "close", "delete"}
    with pytest.raises(AcpError, match="initialized already"):
        await acp.request("initialize", {"protocolVersion": 1})


async def test_nothing_is_answered_before_initialize(start: Callable[..., Any]) -> None:
    acp = await start(initialize=False)

    with pytest.raises(AcpError, match="initialize first"):
        await acp.new_session()

    await acp.initialize()
    assert await acp.new_session()


@pytest.mark.parametrize(("text", "reason"), [("long", "max_tokens"), ("refuse", "refusal"), ("hello", "end_turn")])
async def test_stop_reasons_are_those_of_acp(acp: Acp, text: str, reason: str) -> None:
    assert (await acp.prompt(await acp.new_session(), text))["stopReason"] == reason


async def test_a_run_that_fails_is_an_error_with_our_kind_and_the_session_goes_on(acp: Acp) -> None:
    session = await acp.new_session()

    with pytest.raises(AcpError) as failed:
        await acp.prompt(session, "fail")

    assert (failed.value.code, failed.value.kind) == (4032, "modelQuota")
    assert (await acp.prompt(session, "hello"))["stopReason"] == "end_turn"


async def test_a_tool_s_call_is_shown_with_kind_title_input_and_result(acp: Acp) -> None:
    await acp.prompt(await acp.new_session(), "look")

    (begun,) = acp.of_kind("tool_call")
    assert (begun["kind"], begun["title"], begun["status"]) == ("read", "Look into a file", "in_progress")
    assert begun["rawInput"] == {"path": "a.txt"}
    (ended,) = acp.of_kind("tool_call_update")
    assert (ended["toolCallId"], ended["status"]) == (begun["toolCallId"], "completed")
    assert ended["content"] == [{"type": "content", "content": {"type": "text", "text": "nothing in a.txt"}}]
    assert acp.text("agent_thought_chunk") == "I should look."


async def test_what_is_loaded_is_what_was_seen_live(start: Callable[..., Any]) -> None:
    first = await start(capabilities=CAPABLE)
    first.serves["session/request_permission"] = lambda params: selected("allowOnce")
    session = await first.new_session()
    for text in ("hello", "look", "remove a file"):
        await first.prompt(session, text)
    live = joined(first.updates)
    assert await first.end() == 0

    second = await start(capabilities=CAPABLE)
    loaded = await second.request("session/load", opening(second, session))

    replayed = joined(second.updates)
    assert [shown for shown in replayed if shown[0] != "user_message_chunk"] == live
    said = [shown[1][1] for shown in replayed if shown[0] == "user_message_chunk"]
    assert said == ["hello", "look", "remove a file"]
    assert loaded["configOptions"]
    assert (await second.prompt(session, "again"))["stopReason"] == "end_turn"
    assert second.text().endswith("You said: again")


async def test_a_session_that_is_open_can_be_loaded_again(acp: Acp) -> None:
    session = await acp.new_session()
    await acp.prompt(session, "hello")
    seen = joined(acp.updates)
    acp.updates.clear()

    await acp.request("session/load", opening(acp, session))

    assert joined(acp.updates)[1:] == seen


async def test_a_session_is_resumed_without_a_replay(start: Callable[..., Any]) -> None:
    first = await start()
    session = await first.new_session()
    await first.prompt(session, "hello")
    await first.end()

    second = await start()
    await second.request("session/resume", opening(second, session))

    assert second.updates == []
    await second.prompt(session, "again")
    assert second.text() == "You said: again"


async def test_sessions_are_listed_by_folder_closed_and_deleted(acp: Acp, tmp_path: Path) -> None:
    here, there = await acp.new_session(), await acp.new_session(cwd="/tmp/elsewhere")

    listed = (await acp.request("session/list", {"cwd": str(tmp_path)}))["sessions"]
    assert [(info["sessionId"], info["cwd"]) for info in listed] == [(here, str(tmp_path))]
    everything = (await acp.request("session/list", {}))["sessions"]
    assert {info["sessionId"] for info in everything} == {here, there}

    await acp.request("session/close", {"sessionId": here})
    with pytest.raises(AcpError) as closed:
        await acp.prompt(here, "hello")
    assert closed.value.kind == "sessionClosed"

    for _ in range(2):
        await acp.request("session/delete", {"sessionId": here})
    assert [info["sessionId"] for info in (await acp.request("session/list", {}))["sessions"]] == [there]
    with pytest.raises(AcpError) as gone:
        await acp.request("session/load", opening(acp, here))
    assert gone.value.kind == "sessionNotFound"


async def test_closing_a_session_ends_its_prompt(acp: Acp) -> None:
    session = await acp.new_session()
    story = acp.begin("session/prompt", prompt(session, "story"))
    await acp.until(lambda: acp.text() == BEGINNING)

    await acp.request("session/close", {"sessionId": session})

    assert (await story)["stopReason"] == "cancelled"


async def test_a_second_prompt_is_refused_while_the_first_one_runs(acp: Acp) -> None:
    session = await acp.new_session()
    story, second = acp.begin_all(
        ("session/prompt", prompt(session, "story")), ("session/prompt", prompt(session, "hello"))
    )

    with pytest.raises(AcpError) as busy:
        await second
    assert busy.value.kind == "sessionBusy"

    await acp.until(lambda: acp.text() == BEGINNING)
    acp.notify("session/cancel", {"sessionId": session})
    assert (await story)["stopReason"] == "cancelled"


@pytest.mark.parametrize("begun", [True, False], ids=["while it runs", "in the same write"])
@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
async def test_a_prompt_is_cancelled_in_both_ways(acp: Acp, method: str, *, begun: bool) -> None:
    session = await acp.new_session()
    cancel = {"requestId": acp.next_id} if method == "$/cancel_request" else {"sessionId": session}
    requests = [("session/prompt", prompt(session, "story")), (method, cancel)]

    if begun:
        (story,) = acp.begin_all(requests[0])
        await acp.until(lambda: acp.text() == BEGINNING)
        acp.notify(*requests[1])
    else:
        (story,) = acp.begin_all(*requests)

    assert (await story)["stopReason"] == "cancelled"
    assert (await acp.prompt(session, "hello"))["stopReason"] == "end_turn"


async def test_cancelling_what_is_not_there_does_nothing(acp: Acp) -> None:
    session = await acp.new_session()

    acp.notify("session/cancel", {"sessionId": session})
    acp.notify("session/cancel", {"sessionId": "no such session"})
    acp.notify("$/cancel_request", {"requestId": 999})
    acp.write(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}\n')
    acp.write(b'{"jsonrpc":"2.0","method":"session/cancel","params":{}}\n')
    acp.write(b'{"jsonrpc":"2.0","method":"no/such"}\n')

    assert (await acp.prompt(session, "hello"))["stopReason"] == "end_turn"
    assert acp.loose == []


async def test_the_model_is_a_config_option(acp: Acp) -> None:
    session = await acp.new_session()

    answer = await acp.request(
        "session/set_config_option", {"sessionId": session, "configId": "model", "value": "scripted:echo"}
    )

    (model,) = [option for option in answer["configOptions"] if option["id"] == "model"]
    assert (model["currentValue"], model["category"]) == ("scripted:echo", "model")
    await acp.prompt(session, "look here")
    assert acp.text() == "look here"
    assert acp.of_kind("session_info_update")


async def test_the_agent_s_own_setting_is_chosen_by_an_empty_value(acp: Acp) -> None:
    session = await acp.new_session()
    effort = {"sessionId": session, "configId": "reasoningEffort"}

    for value in ("high", ""):
        answer = await acp.request("session/set_config_option", {**effort, "value": value})
        (option,) = [option for option in answer["configOptions"] if option["id"] == "reasoningEffort"]
        assert option["currentValue"] == value
        assert value in [choice["value"] for choice in option["options"]]


async def test_settings_that_are_not_there_are_refused_by_name(acp: Acp) -> None:
    session = await acp.new_session()

    with pytest.raises(AcpError) as no_modes:
        await acp.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    assert no_modes.value.kind == "capabilityRequired"
    with pytest.raises(AcpError, match="no such option"):
        await acp.request("session/set_config_option", {"sessionId": session, "configId": "colour", "value": "red"})
    with pytest.raises(AcpError) as folders:
        await acp.new_session(additionalDirectories=["/tmp"])
    assert folders.value.kind == "capabilityRequired"
    with pytest.raises(AcpError, match="absolute"):
        await acp.new_session(cwd="here")


async def test_mcp_servers_are_taken_with_a_warning(acp: Acp) -> None:
    server = {"name": "files", "command": "files", "args": [], "env": []}

    created = await acp.request("session/new", {"cwd": "/tmp", "mcpServers": [server]})

    (warning,) = created["_meta"]["sidecar"]["warnings"]
    assert "MCP" in warning
    await acp.until(lambda: acp.of_kind("notice"))
    assert acp.of_kind("notice")[0]["title"] == warning
    assert "result" in acp.log[-2], "the notice comes after the answer that names its session"


async def test_the_sidecar_s_own_methods_are_there_unchanged(acp: Acp) -> None:
    session = await acp.new_session()
    run_id = (await acp.prompt(session, "hello"))["_meta"]["sidecar"]["runId"]

    state = await acp.request("_sidecar/getState", {"sessionId": session})
    assert state["session"]["status"] == "idle"
    events = await acp.request("_sidecar/getEvents", {"sessionId": session, "afterSeq": 0})
    assert events["events"][-1]["type"] == "run.completed"
    explained = await acp.request("_sidecar/explainRun", {"sessionId": session, "runId": run_id})
    assert len(explained["calls"]) == 1
    with pytest.raises(AcpError) as unknown:
        await acp.request("_sidecar/shutdown", {})
    assert unknown.value.code == -32601


async def test_images_and_resources_reach_the_model(
    tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.says(T("seen"), F())
    monkeypatch.setattr(Cli, "environment", {**Cli(tmp_path).environment, **model.environment})
    cli = Cli(tmp_path)
    picture = base64.b64encode(b"\x89PNG").decode()
    blocks = [
        {"type": "text", "text": "What is this?", "annotations": {"priority": 1}},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.py", "mimeType": "text/x-python", "text": "import this"}},
        {"type": "resource_link", "uri": "file:///b.py", "name": "b.py"},
    ]

    async with Acp(cli, "--store", "memory", "--model", "openai:fake-1") as acp:
        await acp.initialize()
        session = await acp.new_session()
        await acp.request("session/prompt", {"sessionId": session, "prompt": blocks})

    sent = json.dumps(model.last_request.body["messages"])
    assert all(part in sent for part in ("What is this?", picture, "import this", "file:///b.py"))


async def test_a_run_that_goes_on_at_the_end_of_the_input_is_interrupted_and_stored(start: Callable[..., Any]) -> None:
    first = await start()
    session = await first.new_session()
    story = first.begin("session/prompt", prompt(session, "story"))
    await first.until(lambda: first.text() == BEGINNING)

    assert await first.end() == 0
    assert (await story)["stopReason"] == "cancelled"

    second = await start()
    events = await second.request("_sidecar/getEvents", {"sessionId": session, "afterSeq": 0})
    assert events["events"][-1]["data"]["status"] == "interrupted"
