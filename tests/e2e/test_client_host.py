"""The Python client as a host, with real sidecars: its tools, its providers, its consent, also after a kill."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from sidecar_client import (
    Host,
    RpcError,
    RunEvent,
    Session,
    SidecarClient,
    ToolCall,
    ToolFailure,
    ToolResult,
    allow_once,
    allow_session,
    host_tool,
    reject,
)
from tests.bench.fake_model import FakeModel, Recorded

Start = Callable[..., AbstractAsyncContextManager[SidecarClient]]


@pytest.fixture
def start(model: FakeModel, store: str) -> Start:
    """Starts clients on one store and one model."""

    def start_client(host: Host, **options: Any) -> AbstractAsyncContextManager[SidecarClient]:
        return SidecarClient.start(["--store", store], env=model.environment, host=host, **options)

    return start_client


def tool_texts(request: Recorded) -> list[Any]:
    """The results of tools that the model reads."""
    return [message["content"] for message in request.messages if message["role"] == "tool"]


class Files:
    """A host's tools that remember what was done."""

    def __init__(self) -> None:
        self.removed: list[str] = []

        @host_tool(approval_mode="always_require", kind="edit")
        async def remove(path: str) -> str:
            """Remove a file."""
            self.removed.append(path)
            return f"removed {path}"

        self.remove = remove


@host_tool()
def weather(city: str, call: ToolCall) -> ToolResult:
    """Tell the weather."""
    if city == "Atlantis":
        raise ToolFailure("it is under water")
    return ToolResult(f"rain, says {call.kwargs.get('station')}", structured_content={"rain": True})


async def test_a_tool_of_the_host_is_called_with_the_run_s_values(start: Start, model: FakeModel) -> None:
    model.calls("weather", {"city": "Ghent"})
    model.calls("weather", {"city": "Atlantis"})
    model.says("Take a coat.")
    events: list[RunEvent] = []
    async with start(Host(tools=[weather])) as client:
        session = await client.create_session(tools=[weather])
        result = await session.run("coat?", on_event=events.append, functionInvocationKwargs={"station": "Uccle"})

    assert result["text"] == "Take a coat."
    done = [event["data"] for event in events if event["type"] == "tool.completed"]
    assert [tool["status"] for tool in done] == ["completed", "failed"]
    assert done[0]["structuredContent"] == {"rain": True}
    assert tool_texts(model.requests[1]) == ["rain, says Uccle"]
    assert "ToolFailure: it is under water" in tool_texts(model.requests[2])[-1]


async def test_a_run_that_is_cancelled_cancels_the_host_s_tool(start: Start, model: FakeModel) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    @host_tool()
    async def wait() -> None:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    model.calls("wait", {})
    async with start(Host(tools=[wait])) as client:
        session = await client.create_session(tools=[wait])
        run = session.stream("go")
        await began.wait()
        run.cancel()
        assert (await run.result())["status"] == "cancelled"
        await stopped.wait()


async def test_a_provider_of_the_host_adds_context_and_keeps_state(start: Start, model: FakeModel) -> None:
    class Names:
        def before_run(self, params: Any) -> Any:
            return {"instructions": f"Seen before: {(params['state'] or {}).get('seen', 'nothing')}."}

        async def after_run(self, params: Any) -> Any:
            return {"state": {"seen": params["response"]["text"]}}

    model.otherwise(lambda request: [request.last_user_text])
    async with start(Host(providers={"names": Names()})) as client:
        session = await client.create_session(contextProviders=[{"type": "host", "sourceId": "names"}])
        await session.run("one")
        await session.run("two")
    assert [request.system for request in model.requests] == ["Seen before: nothing.", "Seen before: one."]


async def test_a_person_s_no_keeps_the_tool_from_running_and_tells_the_model_why(
    start: Start, model: FakeModel
) -> None:
    files, asked = Files(), []

    async def approve(request: Any) -> Any:
        asked.append((request["toolCall"]["name"], request["toolCall"]["arguments"]))
        return reject("use the bin") if len(asked) == 1 else allow_once()

    model.calls("remove", {"path": "a.txt"})
    model.calls("remove", {"path": "b.txt"})
    model.says("done")
    async with start(Host(tools=[files.remove], approve=approve)) as client:
        session = await client.create_session(tools=[files.remove])
        assert (await session.run("go"))["text"] == "done"

    assert asked == [("remove", {"path": "a.txt"}), ("remove", {"path": "b.txt"})]
    assert files.removed == ["b.txt"]
    assert "use the bin" in tool_texts(model.requests[1])[-1]


async def test_standing_rules_are_listed_and_revoked(start: Start, model: FakeModel) -> None:
    files, asked = Files(), []

    async def approve(request: Any) -> Any:
        asked.append(request["requestId"])
        return allow_session()

    for path in ("a", "b", "c"):
        model.calls("remove", {"path": path})
        model.says("done")
    async with start(Host(tools=[files.remove], approve=approve)) as client:
        session = await client.create_session(tools=[files.remove])
        tools = (await session.list_tools())["items"]
        assert [(tool["name"], tool["approvalMode"]) for tool in tools] == [("remove", "always_require")]
        await session.run("one")
        await session.run("two")
        assert len(asked) == 1
        (rule,) = (await session.list_approval_rules())["items"]
        assert (rule["tool"], rule["decision"], rule["scope"]) == ("remove", "allow", "session")
        await client.revoke_approval_rule(rule["ruleId"], session_id=session.session_id)
        assert (await session.list_approval_rules())["items"] == []
        await session.run("three")
    assert len(asked) == 2
    assert files.removed == ["a", "b", "c"]


async def test_tools_and_providers_are_supplied_again_to_the_new_process(start: Start, model: FakeModel) -> None:
    class Notes:
        def before_run(self, _: Any) -> Any:
            return {"instructions": "Be brief."}

    model.says("hello")
    model.calls("weather", {"city": "Ghent"})
    model.says("rain")
    host = Host(tools=[weather], providers={"notes": Notes()})
    async with start(host, reconnect=True) as client:
        session = await client.create_session(tools=[weather], contextProviders=[{"type": "host", "sourceId": "notes"}])
        await session.run("hi")
        client.kill()
        await client.wait_ended()
        assert (await session.run("rain?"))["text"] == "rain"
    assert tool_texts(model.requests[-1]) == ["rain, says None"]
    assert [request.system for request in model.requests] == ["Be brief."] * 3


async def test_a_consent_that_was_open_at_the_kill_is_given_late_in_the_new_process(
    start: Start, model: FakeModel
) -> None:
    files, asked = Files(), asyncio.Event()

    async def never(_: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    model.calls("remove", {"path": "a.txt"})
    model.says("It is gone.")
    everything: list[RunEvent] = []
    async with start(Host(tools=[files.remove], approve=never), reconnect=True) as client:
        client.on_event(everything.append)
        session = await client.create_session(tools=[files.remove])
        run = session.stream("go")
        await asked.wait()
        client.kill()

        result = await run.result()
        assert (result["status"], result["stopReason"]) == ("completed", "inputRequired")
        (pending,) = (await session.get_state(include=["pending"])).get("pendingRequests", [])
        assert pending["payload"]["toolCall"]["arguments"] == {"path": "a.txt"}
        assert files.removed == []

        answered = await session.answer(pending, allow_once())
        assert answered["status"] == "resolved"
        await ended(session, answered.get("runId", ""))
        again = await session.answer(pending, allow_once())
        assert again["status"] == "alreadyResolved"

    assert files.removed == ["a.txt"]
    durable = [event["seq"] for event in everything if "ephemeral" not in event]
    assert durable == list(range(1, durable[-1] + 1))


async def ended(session: Session, run_id: str) -> None:
    """Wait for the end of a run that was not started by us."""
    seen = 0
    while True:
        page = await session.get_events(afterSeq=seen, waitMs=5_000)
        for event in page["events"]:
            seen = event["seq"]
            if event["type"] == "run.completed" and event.get("runId") == run_id:
                assert event["data"]["status"] == "completed"
                return


async def test_another_client_answers_what_was_left_open(start: Start, model: FakeModel) -> None:
    files = Files()
    model.calls("remove", {"path": "a.txt"})
    model.says("It is gone.")
    agent: Any = {"approvals": {"mode": "inputRequired"}}
    async with start(Host(tools=[files.remove])) as client:
        session = await client.create_session(sessionId="mine", agent=agent, tools=[files.remove])
        assert (await session.run("go"))["stopReason"] == "inputRequired"

    other = Files()
    async with start(Host(tools=[other.remove])) as client:
        session = await client.resume_session("mine", tools=[other.remove])
        (pending,) = session.pending_requests
        with pytest.raises(ValueError, match="there is no option 'x-new'"):
            await session.answer(pending, "x-new")
        answered = await session.answer(pending, allow_once())
        await ended(session, answered.get("runId", ""))
    assert (files.removed, other.removed) == ([], ["a.txt"])


async def test_a_client_without_a_person_to_ask_leaves_the_question_open(start: Start, model: FakeModel) -> None:
    files = Files()
    model.calls("remove", {"path": "a.txt"})
    async with start(Host(tools=[files.remove])) as client:
        session = await client.create_session(tools=[files.remove])
        result = await session.run("go")
        assert result["stopReason"] == "inputRequired"
        state = await session.get_state(include=["pending"])
        assert [one["requestId"] for one in state.get("pendingRequests", [])] == [
            one["requestId"] for one in result.get("pendingRequests", [])
        ]
        assert (await client.resolve_request("no-such", {}, session_id=session.session_id))["status"] == "unknown"
        with pytest.raises(RpcError):
            await client.resolve_request("no-such", {}, session_id="no-such-session")
    assert files.removed == []
