"""The Python client answers what the sidecar asks of its host: tools, providers, approvals, questions."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar_client import (
    Host,
    RpcError,
    SidecarClient,
    accept,
    allow_always,
    allow_once,
    allow_session,
    decline,
    host_tool,
    reject,
    reject_always,
)
from sidecar_client.types import PendingRequest

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]
OPTIONS = [
    {"optionId": "yes", "name": "Allow once", "kind": "allowOnce"},
    {"optionId": "all", "name": "Allow always", "kind": "allowAlways"},
    {"optionId": "no", "name": "Reject", "kind": "rejectOnce"},
]


@host_tool()
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@asynccontextmanager
async def hosting(host: Host, **options: Any) -> AsyncIterator[SidecarClient]:
    async with SidecarClient.start(command=FAKE, host=host, **options) as client:
        yield client


async def ask(client: SidecarClient, method: str, /, **params: Any) -> Any:
    """What the host answers such a request."""
    return await client.request("askHost", {"method": method, "params": {"sessionId": "s", "runId": "r", **params}})


async def call_tool(client: SidecarClient, name: str, session_id: str = "s", **arguments: Any) -> Any:
    params = {"sessionId": session_id, "name": name, "callId": "c", "requestId": "q", "arguments": arguments}
    return await ask(client, "host/callTool", **params)


def features(client: SidecarClient) -> Any:
    return client.server["params"]["initializationOptions"]["sidecar"]["features"]


async def test_a_host_that_answers_nothing_declares_nothing() -> None:
    async with hosting(Host()) as client:
        assert features(client) == {}
        for method in ("host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit"):
            assert (await ask(client, method))["error"]["code"] == -32601


async def test_what_a_host_answers_is_declared() -> None:
    class Nothing:
        def after_run(self, params: Any) -> None:
            return None

    host = Host(
        tools=(), providers={"p": Nothing()}, approve=lambda _: None, elicit=lambda _: None, elicit_modes=("form",)
    )
    async with hosting(host) as client:
        assert features(client) == {
            "hostTools": {},
            "hostProviders": {},
            "approvals": {},
            "elicitation": {"form": {}},
        }


async def test_a_tool_is_offered_with_a_session_and_answers_there() -> None:
    async with hosting(Host(tools=())) as client:
        raw: Any = {"name": "raw"}
        session = await client.create_session(sessionId="mine", tools=[shout, raw])
        assert session.opened["given"]["tools"] == [shout.declaration, raw]
        assert (await call_tool(client, "shout", "mine", text="hey"))["result"] == {"content": "HEY"}
        elsewhere = await call_tool(client, "shout", "another", text="hey")
        assert (elsewhere["error"]["code"], elsewhere["error"]["message"]) == (-32602, "this host has no tool 'shout'")


async def test_two_sessions_may_have_tools_of_one_name() -> None:
    def made(answer: str) -> Any:
        @host_tool(name="where", description="Where are we?")
        def where() -> str:
            return answer

        return where

    async with hosting(Host(tools=[made("anywhere")])) as client:
        await client.create_session(sessionId="one", tools=[made("first")])
        await client.create_session(sessionId="two", tools=[made("second")])
        answers = [await call_tool(client, "where", session_id) for session_id in ("one", "two", "three")]
        assert [answer["result"]["content"] for answer in answers] == ["first", "second", "anywhere"]

        await client.resume_session("one", tools=[])
        await client.resume_session("two")
        answers = [await call_tool(client, "where", session_id) for session_id in ("one", "two")]
        assert [answer["result"]["content"] for answer in answers] == ["anywhere", "second"]


async def test_a_session_that_could_not_be_opened_keeps_the_tools_that_it_has() -> None:
    @host_tool(name="shout", description="Whisper instead.")
    def whisper(text: str) -> str:
        return text.lower()

    async with hosting(Host(tools=())) as client:
        await client.create_session(sessionId="mine", tools=[shout])
        with pytest.raises(RpcError):
            await client.resume_session("mine", tools=[whisper], contextProviders=[{"type": "refused"}])
        assert (await call_tool(client, "shout", "mine", text="Hey"))["result"] == {"content": "HEY"}


async def test_tools_of_a_host_that_was_not_declared_are_refused_here() -> None:
    async with hosting(Host()) as client:
        with pytest.raises(ValueError, match="give `start` a Host with `tools`"):
            await client.create_session(tools=[shout])


async def test_a_function_that_blocks_does_not_keep_other_messages_from_coming() -> None:
    free = threading.Event()

    @host_tool()
    def wait() -> str:
        """Wait for somebody."""
        free.wait()
        return "done"

    async with hosting(Host(tools=[wait])) as client:
        client.on_notification("session/updated", lambda _: free.set())
        params = {"sessionId": "s", "runId": "r", "callId": "c", "requestId": "q", "name": "wait", "arguments": {}}
        asked = {"method": "host/callTool", "params": params, "thenTell": {"method": "session/updated", "params": {}}}
        assert (await client.request("askHost", asked))["result"] == {"content": "done"}


async def test_a_call_that_is_taken_back_cancels_the_tool_in_its_middle() -> None:
    stopped: list[bool] = []

    @host_tool()
    async def ask_back() -> None:
        """Ask the sidecar, which takes the call back."""
        try:
            await client.request("echo")
        finally:
            stopped.append(True)

    async with hosting(Host(tools=[ask_back])) as client:
        params = {"sessionId": "s", "runId": "r", "callId": "c", "requestId": "q", "name": "ask_back", "arguments": {}}
        asked = {"method": "host/callTool", "params": params, "thenHear": True, "thenCancel": True}
        reply = await client.request("askHost", asked)
    assert reply["error"]["code"] == -32800
    assert stopped == [True]


async def test_a_call_that_is_taken_back_leaves_its_thread_to_itself() -> None:
    free, ended = threading.Event(), threading.Event()

    @host_tool()
    def ask_back() -> None:
        """Ask the sidecar, which takes the call back; then wait."""
        asyncio.run_coroutine_threadsafe(client.request("echo"), loop)
        free.wait()
        ended.set()

    loop = asyncio.get_running_loop()
    async with hosting(Host(tools=[ask_back])) as client:
        params = {"sessionId": "s", "runId": "r", "callId": "c", "requestId": "q", "name": "ask_back", "arguments": {}}
        asked = {"method": "host/callTool", "params": params, "thenHear": True, "thenCancel": True}
        assert (await client.request("askHost", asked))["error"]["code"] == -32800
        free.set()
        await asyncio.to_thread(ended.wait)
        assert (await ask(client, "host/elicit"))["error"]["code"] == -32601


async def test_a_provider_answers_both_hooks_or_one() -> None:
    seen: list[Any] = []

    class Notes:
        async def before_run(self, params: Any) -> Any:
            seen.append(params["agent"])
            return {"instructions": "Be brief.", "state": {"runs": 1}}

        def after_run(self, params: Any) -> Any:
            seen.append(params["response"]["text"])

    class Listener:
        def after_run(self, params: Any) -> Any:
            return {"state": {"heard": params["response"]["text"]}}

    async with hosting(Host(providers={"notes": Notes(), "listener": Listener()})) as client:
        before = await ask(client, "host/beforeRun", sourceId="notes", agent="default")
        assert before["result"] == {"instructions": "Be brief.", "state": {"runs": 1}}
        after = await ask(client, "host/afterRun", sourceId="notes", response={"text": "ok"})
        assert after["result"] == {}
        assert seen == ["default", "ok"]
        assert (await ask(client, "host/beforeRun", sourceId="listener"))["result"] == {}
        heard = await ask(client, "host/afterRun", sourceId="listener", response={"text": "ok"})
        assert heard["result"] == {"state": {"heard": "ok"}}
        nobody = await ask(client, "host/beforeRun", sourceId="nobody")
        assert (nobody["error"]["code"], nobody["error"]["message"]) == (-32602, "this host has no provider 'nobody'")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (allow_once(), {"outcome": "selected", "optionId": "yes"}),
        (allow_always(), {"outcome": "selected", "optionId": "all"}),
        (allow_session(), {"outcome": "selected", "optionId": "yes"}),
        (reject("use the bin"), {"outcome": "selected", "optionId": "no", "message": "use the bin"}),
        (reject_always(), {"outcome": "selected", "optionId": "no"}),
        ("all", {"outcome": "selected", "optionId": "all"}),
        ({"outcome": "selected", "optionId": "x-new"}, {"outcome": "selected", "optionId": "x-new"}),
        (None, {"outcome": "cancelled"}),
    ],
)
async def test_what_a_person_decides_is_answered_by_the_option_that_is_offered(answer: Any, outcome: Any) -> None:
    async def approve(_: Any) -> Any:
        return answer

    async with hosting(Host(approve=approve)) as client:
        assert (await ask(client, "host/requestApproval", options=OPTIONS))["result"] == outcome


@pytest.mark.parametrize("answer", ["nonsense", allow_once()])
async def test_an_option_that_is_not_offered_is_an_error_which_denies(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosting(Host(approve=lambda _: answer)) as client:
        reply = await ask(client, "host/requestApproval", options=OPTIONS[2:])
    assert reply["error"]["code"] == -32603
    assert "offered" in caplog.text or "there is no option" in caplog.text


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (accept({"name": "Ann"}), {"action": "accept", "content": {"name": "Ann"}}),
        (accept(), {"action": "accept"}),
        (decline(), {"action": "decline"}),
        (None, {"action": "cancel"}),
    ],
)
async def test_a_question_is_answered(answer: Any, result: Any) -> None:
    async with hosting(Host(elicit=lambda _: answer)) as client:
        assert (await ask(client, "host/elicit", mode="form", message="Who?"))["result"] == result


async def test_a_handler_of_one_s_own_comes_before_the_host() -> None:
    async def approve(_: Any) -> Any:
        return {"outcome": "cancelled"}

    async def elicit(_: Any) -> Any:
        return {"action": "decline"}

    handlers = {"host/requestApproval": approve, "host/elicit": elicit}
    host = Host(approve=lambda _: allow_once(), elicit=lambda _: accept(), elicit_modes=())
    async with hosting(host, handlers=handlers) as client:
        assert features(client)["elicitation"] == {"form": {}, "url": {}}
        assert (await ask(client, "host/requestApproval", options=OPTIONS))["result"] == {"outcome": "cancelled"}


def pending(kind: Any, **payload: Any) -> PendingRequest:
    return PendingRequest(requestId="q", kind=kind, runId="r", openedAt="t", payload=payload)


@pytest.mark.parametrize(
    ("request_", "answer", "result"),
    [
        (pending("approval", options=OPTIONS), allow_once(), {"outcome": "selected", "optionId": "yes"}),
        (pending("elicitation"), accept(3), {"action": "accept", "content": 3}),
        (pending("elicitation"), None, {"action": "cancel"}),
        (pending("hostTool"), "done", {"content": "done"}),
        (pending("hostProvider"), {"instructions": "x"}, {"instructions": "x"}),
    ],
)
async def test_a_late_answer_is_what_the_request_would_have_been_answered(
    request_: PendingRequest, answer: Any, result: Any
) -> None:
    async with hosting(Host()) as client:
        session = await client.resume_session("mine")
        asked: Any = await session.answer(request_, answer, functionInvocationKwargs={"user": "ann"})
    params = {"requestId": "q", "sessionId": "mine", "functionInvocationKwargs": {"user": "ann"}, "result": result}
    assert asked == {"method": "resolveRequest", "params": params}


async def test_tools_and_standing_rules_are_listed_and_revoked() -> None:
    async with hosting(Host()) as client:
        session = await client.create_session(sessionId="mine")
        asked: list[Any] = [await session.list_tools(), await session.list_approval_rules(), await client.list_tools()]
        asked.append(await client.resolve_request("q", error={"code": 1}))
        await client.revoke_approval_rule("rule", session_id="mine")
    assert asked == [
        {"method": "listTools", "params": {"sessionId": "mine"}},
        {"method": "listApprovalRules", "params": {"sessionId": "mine"}},
        {"method": "listTools", "params": {}},
        {"method": "resolveRequest", "params": {"error": {"code": 1}, "requestId": "q"}},
    ]
    assert session.pending_requests == []
