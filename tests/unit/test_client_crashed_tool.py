"""Functions of the host that would end it, or whose answer cannot be sent: the sidecar is answered, the host lives."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sidecar_client import Host, SidecarClient, ToolResult, host_tool

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]
SCHEMA: dict[str, Any] = {"type": "object"}
LOOPS = pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


@host_tool(description="Parses.", input_schema=SCHEMA)
def parses() -> None:
    argparse.ArgumentParser().parse_args(["--no-such-option"])


@host_tool(description="Exits.", input_schema=SCHEMA)
async def exits() -> None:
    sys.exit(3)


@host_tool(description="Interrupts.", input_schema=SCHEMA)
def interrupts() -> None:
    raise KeyboardInterrupt


@host_tool(description="Digs.", input_schema=SCHEMA)
def digs() -> ToolResult:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    return ToolResult("x", structured_content=nested)


async def call_tool(client: SidecarClient, name: str) -> Any:
    params = {"sessionId": "s", "runId": "r", "name": name, "callId": "c", "requestId": "q", "arguments": {}}
    return await client.request("askHost", {"method": "host/callTool", "params": params})


def run(factory: Loop, talk: Callable[[SidecarClient], Any], **options: Any) -> Any:
    async def whole() -> Any:
        async with asyncio.timeout(20), SidecarClient.start(command=FAKE, **options) as client:
            return await talk(client)

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(whole())


@LOOPS
def test_a_tool_that_would_end_the_interpreter_has_failed(factory: Loop) -> None:
    async def talk(client: SidecarClient) -> list[Any]:
        return [(await call_tool(client, name))["result"] for name in ("parses", "exits", "interrupts")]

    assert run(factory, talk, host=Host(tools=[parses, exits, interrupts])) == [
        {"content": f"the tool failed: {name}", "isError": True}
        for name in ("SystemExit", "SystemExit", "KeyboardInterrupt")
    ]


@LOOPS
@pytest.mark.parametrize("asynchronous", [False, True])
def test_so_has_whoever_is_asked_for_consent_and_a_handler(factory: Loop, asynchronous: bool) -> None:
    async def exits_soon(_: Any) -> Any:
        sys.exit(3)

    def exits_at_once(_: Any) -> Any:
        sys.exit(3)

    async def talk(client: SidecarClient) -> list[Any]:
        return [await client.request("askHost", {"method": method, "params": {"options": []}}) for method in methods]

    methods = ("host/requestApproval", "host/elicit")
    host = Host(approve=exits_soon if asynchronous else exits_at_once)
    replies = run(factory, talk, host=host, handlers={"host/elicit": exits_soon})
    assert [reply["error"]["code"] for reply in replies] == [-32603, -32603]


@LOOPS
def test_an_answer_that_is_nested_too_deeply_is_answered_with_an_error(factory: Loop) -> None:
    async def talk(client: SidecarClient) -> Any:
        return await call_tool(client, "digs")

    assert run(factory, talk, host=Host(tools=[digs]))["error"]["code"] == -32603


async def test_a_request_that_is_nested_too_deeply_is_refused_here_and_the_connection_lives() -> None:
    nested: Any = {}
    for _ in range(100_000):
        nested = {"a": nested}
    async with SidecarClient.start(command=FAKE) as client:
        with pytest.raises(ValueError, match="nested too deeply"):
            await client.request("echo", nested)
        assert (await client.request("echo"))["method"] == "echo"
