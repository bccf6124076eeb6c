"""The Python client against a scripted process: answers, events, reverse requests, ends."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sidecar_client import Handlers, RpcError, RunEvent, SidecarClient, SidecarDied
from sidecar_client.intake import EVENTS_KEPT
from sidecar_client.types import CallToolParams, CallToolResult, ElicitParams, ElicitResult
from tests.unit.fake_sidecar import FLOOD

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]


@pytest.fixture
async def client() -> AsyncIterator[SidecarClient]:
    async with SidecarClient.start(command=FAKE) as started:
        yield started


async def test_start_initializes_and_close_ends_the_process_in_order() -> None:
    async with SidecarClient.start(command=FAKE, options={"features": {"hostTools": {}}}) as client:
        params = client.server["params"]
        assert client.server["method"] == "initialize"
        assert params["processId"] == os.getpid()
        assert params["initializationOptions"]["sidecar"]["features"] == {"hostTools": {}}
        assert client.returncode is None
    assert client.returncode == 0


async def test_answers_find_their_requests_in_whatever_order_they_come(client: SidecarClient) -> None:
    first = asyncio.ensure_future(client.request("swap"))
    await asyncio.sleep(0)
    assert await client.request("other") == "second"
    assert await first == "first"


async def test_a_line_of_eight_million_characters_arrives_whole(client: SidecarClient) -> None:
    assert await client.request("big", {"size": 8_000_000}) == "x" * 8_000_000


async def test_a_long_request_and_a_lone_surrogate_arrive_whole(client: SidecarClient) -> None:
    params = {"text": "é" * 500_000, "half": "\ud800"}
    assert (await client.request("echo", params))["params"] == params


async def test_a_number_that_json_lacks_is_refused_here_and_the_connection_lives(client: SidecarClient) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        await client.request("echo", {"number": float("nan")})
    assert await client.request("noise") == "after the noise"


async def test_lines_that_are_no_messages_are_skipped(client: SidecarClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await client.request("noise") == "after the noise"
    assert len(caplog.records) == 2


async def test_a_listener_that_fails_costs_no_other_message(
    client: SidecarClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any) -> None:
        raise KeyError("listener")

    client.on_event(fail)
    assert len([event async for event in client.stream("hello")]) == 3
    assert [record.exc_info is not None for record in caplog.records] == [True] * 3


async def test_events_of_a_run_come_in_order_and_end_with_its_answer(client: SidecarClient) -> None:
    session = await client.create_session(sessionId="mine", agent="default")
    assert session.opened["given"] == {"sessionId": "mine", "agent": "default"}

    run = session.stream("hello", timeoutMs=5)
    types = [event["type"] async for event in run]
    result: Any = await run.result()

    assert types == ["run.started", "message.completed", "run.completed"]
    assert result["text"] == "hello"
    assert result["echo"] == {"sessionId": "mine", "input": "hello", "runId": run.run_id, "timeoutMs": 5}
    assert [event async for event in run] == []


async def test_run_calls_back_with_each_event(client: SidecarClient) -> None:
    seen: list[int] = []
    session = await client.resume_session("old")
    result = await session.run("hello", on_event=lambda event: seen.append(event["seq"]))
    assert (result["status"], seen) == ("completed", [1, 5, 6])


async def test_what_is_asked_of_a_session_names_it(client: SidecarClient) -> None:
    session = await client.create_session(sessionId="mine")
    asked: list[Any] = [await session.cancel("r"), await session.get_state(include=["state"])]
    asked.append(await session.get_history(limit=5, order="desc"))
    await session.close()
    assert asked == [
        {"method": "cancelRun", "params": {"sessionId": "mine", "runId": "r"}},
        {"method": "getState", "params": {"sessionId": "mine", "include": ["state"]}},
        {"method": "getHistory", "params": {"sessionId": "mine", "limit": 5, "order": "desc"}},
    ]
    assert session.info["sessionId"] == "mine"


async def test_the_state_of_the_sidecar_names_no_session(client: SidecarClient) -> None:
    asked: Any = await client.get_state(include=["usage"])
    assert asked["params"] == {"include": ["usage"]}


async def test_other_notifications_reach_their_handler(client: SidecarClient) -> None:
    seen: list[dict[str, Any]] = []
    client.on_notification("session/updated", seen.append)
    await client.request("tell", {"method": "session/updated", "params": {"session": {"sessionId": "s"}}})
    assert seen == [{"session": {"sessionId": "s"}}]


async def test_what_is_asked_about_stored_sessions_has_its_own_methods(client: SidecarClient) -> None:
    session = await client.create_session(sessionId="mine")
    asked: list[Any] = [await client.list_sessions(limit=2), await session.steer("more", "r")]
    asked += [await session.update(title="t"), await session.get_events(afterSeq=3)]
    assert asked == [
        {"method": "listSessions", "params": {"limit": 2}},
        {"method": "steerRun", "params": {"sessionId": "mine", "expectedRunId": "r", "input": "more"}},
        {"method": "updateSession", "params": {"sessionId": "mine", "title": "t"}},
        {"method": "getEvents", "params": {"sessionId": "mine", "afterSeq": 3}},
    ]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_client_works_on_either_loop(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def talk() -> tuple[str, int]:
        async with SidecarClient.start(command=FAKE) as client:
            result = await client.run("hello")
            flooded = client.stream("flood")
            return result["text"], len([event async for event in flooded])

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(talk()) == ("hello", FLOOD + 3)


async def test_reading_stops_while_a_run_s_events_are_not_read_and_none_is_lost(client: SidecarClient) -> None:
    arrived = asyncio.Event()
    seen = 0

    def count(_: RunEvent) -> None:
        nonlocal seen
        seen += 1
        if seen == EVENTS_KEPT:
            arrived.set()

    client.on_event(count)
    run = client.stream("flood")
    await arrived.wait()
    await asyncio.sleep(0.1)  # in which a client that went on reading would have it all
    assert EVENTS_KEPT <= seen < FLOOD // 2

    assert [event.get("sub", 0) async for event in run] == [0, *range(1, FLOOD + 1), 0, 0]


async def test_a_reader_may_ask_for_something_else_between_the_events_of_a_flood(client: SidecarClient) -> None:
    run = client.stream("flood")
    count = 0
    async for _ in run:
        count += 1
        if count == 3:
            assert (await client.request("echo"))["method"] == "echo"
    assert count == FLOOD + 3


async def test_a_run_whose_result_alone_is_awaited_ends(client: SidecarClient) -> None:
    assert (await client.stream("flood").result())["text"] == "flood"


async def test_the_handlers_are_declared_as_features() -> None:
    async def call_tool(params: CallToolParams) -> CallToolResult:
        return {"content": params["name"]}

    async def elicit(_: ElicitParams) -> ElicitResult:
        return {"action": "decline"}

    handlers: Handlers = {"host/callTool": call_tool, "host/elicit": elicit}
    async with SidecarClient.start(command=FAKE, handlers=handlers) as client:
        features = client.server["params"]["initializationOptions"]["sidecar"]["features"]
    assert features == {"hostTools": {}, "elicitation": {"form": {}, "url": {}}}


async def test_the_end_of_the_sidecar_stops_the_handlers_of_its_requests() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def never(_: dict[str, Any]) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with SidecarClient.start(command=FAKE, handlers={"host/elicit": never}) as client:
        asking = asyncio.ensure_future(client.request("askHost", {"method": "host/elicit"}))
        await began.wait()
        client.kill()
        with pytest.raises(SidecarDied):
            await asking
        await stopped.wait()


async def test_two_runs_at_once_get_their_own_events(client: SidecarClient) -> None:
    one, two = client.stream("one", agent="a"), client.stream("two", agent="b")
    assert {event.get("runId") async for event in two} == {two.run_id}
    assert {event.get("runId") async for event in one} == {one.run_id}


async def test_a_delegated_run_s_events_belong_to_the_run_that_began_it_all(client: SidecarClient) -> None:
    everything: list[int] = []
    client.on_event(lambda event: everything.append(event["seq"]))
    assert [event["seq"] async for event in client.stream("delegate")] == [1, 2, 3, 5, 6]
    assert everything == [1, 2, 3, 4, 5, 6]


async def test_a_failed_run_raises_after_its_events(client: SidecarClient) -> None:
    run = client.stream("fail")
    assert [(await anext(run))["type"] for _ in range(3)][-1] == "run.completed"
    with pytest.raises(RpcError, match="no such host") as caught:
        await anext(run)
    assert (caught.value.code, caught.value.kind, caught.value.retryable) == (4036, "modelUnavailable", True)
    with pytest.raises(RpcError):
        await run.result()


async def test_cancelling_a_run_lets_its_result_come(client: SidecarClient) -> None:
    run = client.stream("stall")
    assert (await anext(run))["type"] == "run.started"
    run.cancel()
    assert (await run.result())["status"] == "cancelled"
    run.cancel()
    assert (await client.request("echo"))["method"] == "echo"


async def test_cancelling_the_wait_for_a_run_cancels_the_run(client: SidecarClient) -> None:
    started = asyncio.Event()
    task = asyncio.ensure_future(client.run("stall", on_event=lambda _: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await client.request("echo"))["method"] == "echo"


async def test_a_reverse_request_without_a_handler_is_answered_method_not_found(client: SidecarClient) -> None:
    reply = await client.request("askHost", {"method": "host/callTool"})
    assert (reply["id"], reply["error"]["code"]) == ("s1", -32601)


async def test_a_handler_answers_a_reverse_request_while_other_answers_come() -> None:
    async def call_tool(params: dict[str, Any]) -> Any:
        return {"content": f"called {params['name']}"}

    async with SidecarClient.start(command=FAKE, handlers={"host/callTool": call_tool}) as client:
        reply = await client.request("askHost", {"method": "host/callTool", "params": {"name": "weather"}})
    assert reply == {"jsonrpc": "2.0", "id": "s1", "result": {"content": "called weather"}}


@pytest.mark.parametrize(("error", "code"), [(RpcError(4021, "broken"), 4021), (KeyError("secret"), -32603)])
async def test_a_failing_handler_answers_with_an_error_that_tells_nothing_private(error: Exception, code: int) -> None:
    async def fail(_: dict[str, Any]) -> Any:
        raise error

    async with SidecarClient.start(command=FAKE, handlers={"host/elicit": fail}) as client:
        reply = await client.request("askHost", {"method": "host/elicit"})
    assert reply["error"]["code"] == code
    assert "secret" not in reply["error"]["message"]


async def test_a_handler_s_result_that_is_no_json_is_answered_with_an_error() -> None:
    async def answer(_: dict[str, Any]) -> Any:
        return object()

    async with SidecarClient.start(command=FAKE, handlers={"host/elicit": answer}) as client:
        reply = await client.request("askHost", {"method": "host/elicit"})
    assert reply["error"]["code"] == -32603


async def test_a_cancelled_reverse_request_stops_its_handler_and_is_answered() -> None:
    async def never(_: dict[str, Any]) -> Any:
        await asyncio.Event().wait()

    async with SidecarClient.start(command=FAKE, handlers={"host/elicit": never}) as client:
        reply = await client.request("askHost", {"method": "host/elicit", "thenCancel": True})
    assert reply["error"]["code"] == -32800


async def test_a_dying_sidecar_fails_what_waits_and_tells_its_last_words() -> None:
    heard: list[str] = []
    async with SidecarClient.start(command=FAKE, on_stderr=heard.append) as client:
        with pytest.raises(SidecarDied, match="ended with code 7\nout of luck") as caught:
            await client.request("die")
        assert caught.value.returncode == 7
        with pytest.raises(SidecarDied):
            client.stream("too late")
    assert heard == ["out of luck"]


async def test_a_kill_in_a_run_ends_its_events_with_the_death(client: SidecarClient) -> None:
    run = client.stream("stall")
    await anext(run)
    client.kill()
    with pytest.raises(SidecarDied) as caught:
        await anext(run)
    assert caught.value.returncode == -signal.SIGKILL


async def test_close_kills_a_sidecar_that_does_not_listen() -> None:
    async with SidecarClient.start(command=FAKE) as client:
        hanging = asyncio.ensure_future(client.request("hang"))
        await asyncio.sleep(0)
        await client.close(timeout=0.2)
        with pytest.raises(SidecarDied):
            await hanging
    assert client.returncode == -signal.SIGKILL


async def test_a_command_that_does_not_exist_says_so() -> None:
    with pytest.raises(SidecarDied, match="cannot start"):
        async with SidecarClient.start(command=["no-such-command-here"]):
            pass


async def test_the_child_gets_no_python_path_and_a_group_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "somewhere/hostile")
    async with SidecarClient.start(command=FAKE, env={"GREETING": "hello"}) as client:
        environment = await client.request("environment")
    assert "PYTHONPATH" not in environment
    assert environment["GREETING"] == "hello"
    assert environment["group"] != str(os.getpgid(0))


async def test_a_trace_sees_every_message_of_both_directions() -> None:
    seen: list[tuple[str, str]] = []
    async with SidecarClient.start(
        command=FAKE, trace=lambda way, message: seen.append((way, message.get("method", "answer")))
    ) as client:
        await client.request("echo")
    assert seen == [
        ("sent", "initialize"),
        ("received", "answer"),
        ("sent", "initialized"),
        ("sent", "echo"),
        ("received", "answer"),
        ("sent", "shutdown"),
        ("received", "answer"),
        ("sent", "exit"),
    ]


async def test_a_trace_that_fails_keeps_no_message_from_whoever_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    def fails(way: str, message: Any) -> None:
        raise BrokenPipeError

    async with asyncio.timeout(20), SidecarClient.start(command=FAKE, trace=fails) as client:
        assert await client.request("echo", {"said": 1})

    assert "could not be traced" in caplog.text
