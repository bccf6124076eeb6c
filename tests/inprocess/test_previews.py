"""What people are shown of a call: its tool's own words, or nobody is asked because the call cannot be made."""

import asyncio
from typing import Any

import pytest

from protocol.messages import FunctionCallBlock
from providers.api.tool import ArgumentsError, FunctionTool, Preview, ToolError, tool_from_schema
from sidecar.agents.previews import look_at
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, says
from tests.bench.tool_calls import asks, call, told

CALL = FunctionCallBlock(call_id="c0", name="change", arguments={"a": 1})


def change(preview: Any) -> FunctionTool:
    return tool_from_schema(None, name="change", description="Change it.", preview=preview)


async def test_a_tool_is_asked_with_the_arguments() -> None:
    async def preview(arguments: dict[str, Any]) -> Preview:
        return Preview(f"It would change {arguments}", "seal")

    assert await look_at(CALL, change(preview), 10) == (("It would change {'a': 1}", "seal"), None)


async def test_a_tool_without_one_says_nothing() -> None:
    assert await look_at(CALL, change(None), 10) == (None, None)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("There is no such thing."), "Error: There is no such thing."),
        (ArgumentsError("a: must be text"), "Error: Argument parsing failed."),
        (RuntimeError("a secret"), "Error: Function failed."),
        (SystemExit(), "Error: Function failed."),
    ],
)
async def test_a_call_that_cannot_be_shown_fails(error: BaseException, told: str) -> None:
    async def preview(arguments: dict[str, Any]) -> Preview:
        raise error

    assert await look_at(CALL, change(preview), 10) == (None, told)


async def test_a_call_that_takes_too_long_to_be_shown_fails() -> None:
    async def preview(arguments: dict[str, Any]) -> Preview:
        await asyncio.sleep(3600)
        return Preview("never")

    assert await look_at(CALL, change(preview), 0.01) == (None, "Error: Function failed.")


async def test_a_gated_call_that_cannot_be_shown_never_runs() -> None:
    ran: list[str] = []

    async def preview(arguments: dict[str, Any]) -> Preview:
        raise RuntimeError("out of order")

    async def delete(arguments: dict[str, Any], context: object) -> str:
        ran.append("delete")
        return "deleted"

    gated = tool_from_schema(
        delete, name="delete", description="Delete it.", approval_mode="always_require", preview=preview
    )
    run = AgentRun(FakeClient(asks(call("delete")), says("ok")), plan=plan_of(tools=[gated]))

    assert told(await run.say("go")) == ["Error: Function failed."]
    assert ran == []
