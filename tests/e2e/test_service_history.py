"""Conversations that a model's service keeps: only what is new is sent, and who keeps a turn is decided per run."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.bench.fake_responses import FakeResponses
from tests.bench.host import FakeHost, HostSession
from tests.bench.tool_plugins import tool_plugins

SERVICE = "openai-responses:fake"


@pytest_asyncio.fixture
async def service() -> AsyncIterator[FakeResponses]:
    async with FakeResponses() as fake:
        yield fake


async def start(start_host: Any, tmp_path: Path, service: FakeResponses, **options: Any) -> FakeHost:
    endpoint = f'[endpoints.openai-responses]\nbase_url = "{service.url}"\napi_key_env = "SERVICE_KEY"\n'
    if not (tmp_path / "plugins").exists():
        tool_plugins(tmp_path, config=endpoint)
    env = {"SERVICE_KEY": "sk-test", **options.pop("env", {})}
    return await start_host(args=("--config", str(tmp_path / "sidecar.toml")), env=env, **options)


def inputs(service: FakeResponses) -> list[list[str]]:
    """What each request sent: the texts of its messages, and the types of its other items."""
    return [[_shown(item) for item in request.body["input"]] for request in service.requests]


def _shown(item: dict[str, Any]) -> str:
    if item.get("type", "message") != "message":
        return item["type"]
    content = item["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def test_a_storing_client_gets_only_what_is_new_and_goes_on_after_a_restart(
    start_host: Any, tmp_path: Path, service: FakeResponses, store: str
) -> None:
    """Case 14."""
    host = await start(start_host, tmp_path, service, store=store)
    session = await host.create_session(sessionId="s", model=SERVICE)
    service.says("hello")
    service.says("fine")
    await session.run("one")
    await session.run("two")
    assert (await session.state())["session"]["serviceSessionId"] == "resp_2"
    host.kill()
    await host.wait()

    host = await start(start_host, tmp_path, service, store=store)
    session = await host.resume_session("s")
    service.says("bye")
    await session.run("three")

    assert inputs(service) == [["one"], ["two"], ["three"]]
    assert [request.body.get("previous_response_id") for request in service.requests] == [None, "resp_1", "resp_2"]
    assert [role for role, _ in await session.history()] == ["user", "assistant"] * 3


async def test_store_false_keeps_the_conversation_here(start_host: Any, tmp_path: Path, service: FakeResponses) -> None:
    """Case 14."""
    host = await start(start_host, tmp_path, service)
    session = await host.create_session(model=SERVICE)
    for text in ("hello", "fine"):
        service.says(text)
        await session.run("go", options={"store": False})

    assert inputs(service) == [["go"], ["go", "hello", "go"]]
    assert "serviceSessionId" not in (await session.state())["session"]


async def test_an_earlier_local_turn_never_changes_a_later_service_turn(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    """Case 14: decided per run."""
    host = await start(start_host, tmp_path, service)
    session = await host.create_session(model=SERVICE)
    service.says("local")
    await session.run("one", options={"store": False})
    service.says("kept")
    await session.run("two")
    service.says("kept too")
    await session.run("three")

    assert inputs(service) == [["one"], ["two"], ["three"]]
    assert service.last_request.body["previous_response_id"] == "resp_2"


async def test_a_conversation_that_was_begun_elsewhere_goes_on(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    service.keeps("conv_1")
    session = await host.create_session(model=SERVICE, serviceSessionId="conv_1")
    service.says("hello")
    service.says("again")

    await session.run("one")
    await session.run("two")

    assert [request.body.get("conversation") for request in service.requests] == ["conv_1", "conv_1"]
    assert inputs(service) == [["one"], ["two"]]
    assert (await session.state())["session"]["serviceSessionId"] == "conv_1"


async def test_inside_a_run_only_the_results_of_its_tools_are_sent_on(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    session = await host.create_session(model=SERVICE)
    service.calls("add", {"a": 1, "b": 2})
    service.says("three")

    assert (await session.run("1 + 2?"))["text"] == "three"

    assert inputs(service) == [["1 + 2?"], ["function_call_output"]]
    assert service.last_request.body["previous_response_id"] == "resp_1"


async def test_a_model_whose_service_keeps_nothing_goes_on_from_the_transcript_and_a_service_is_told_it_later(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    session: HostSession = await host.create_session(sessionId="s", model=SERVICE)
    service.says("hello")
    await session.run("one")

    await host.request("updateSession", {"sessionId": "s", "configOptions": {"model": "scripted:echo"}})
    local = await session.run("two")
    await host.request("updateSession", {"sessionId": "s", "configOptions": {"model": SERVICE}})
    service.says("fine")
    await session.run("three")

    assert local["text"] == "two"
    assert [warning["kind"] for warning in local["warnings"]] == ["conversationLeft"]
    assert inputs(service) == [["one"], ["one", "hello", "two", "two", "three"]]
    assert "previous_response_id" not in service.last_request.body


async def test_a_forked_session_begins_a_conversation_of_its_own_with_what_was_said_so_far(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    service.keeps("conv_1")
    session = await host.create_session(sessionId="s", model=SERVICE, serviceSessionId="conv_1")
    service.says("hello")
    await session.run("one")

    await host.request("forkSession", {"sessionId": "s", "newSessionId": "f"})
    forked = await host.resume_session("f")
    for text in ("two", "three"):
        service.says("ok")
        await forked.run(text)

    assert inputs(service) == [["one"], ["one", "hello", "two"], ["three"]]
    earlier = [(r.body.get("conversation"), r.body.get("previous_response_id")) for r in service.requests]
    assert earlier == [("conv_1", None), (None, None), (None, "resp_2")]


async def test_web_search_is_offered_where_the_service_has_it_and_left_out_with_a_warning_elsewhere(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    agent = {"tools": [{"type": "registered", "name": "web_search"}]}
    session = await host.create_session(agent=agent, model=SERVICE)
    service.says("found")
    result = await session.run("news?")
    assert {"type": "web_search"} in service.last_request.body["tools"]
    assert result["warnings"] == []

    other = await host.create_session(agent=agent, model="scripted:echo")
    result = await other.run("news?")
    assert [warning["kind"] for warning in result["warnings"]] == ["toolNotOffered"]


async def test_an_agent_that_keeps_its_history_call_by_call_does_not_share_it_with_a_service(
    start_host: Any, tmp_path: Path, service: FakeResponses
) -> None:
    host = await start(start_host, tmp_path, service)
    history = {"type": "file_history", "config": {"path": str(tmp_path / "history")}}
    agent = {"perServiceCallHistory": True, "contextProviders": [history], "options": {"store": False}}
    session = await host.create_session(sessionId="s", agent=agent, model=SERVICE)
    service.says("hello")
    service.says("again")

    await session.run("one")
    await session.run("two")

    assert inputs(service) == [["one"], ["one", "hello", "two"]]
    assert (tmp_path / "history" / "s.jsonl").read_text().count("\n") == 4
