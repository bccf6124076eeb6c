"""Tools that are only declared: the run ends with the call, and the host's result goes on from there."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel, T
from tests.bench.host import FakeHost, HostSession
from tests.bench.tool_plugins import tool_plugins

MODULE = """
from providers.api.tool import tool_from_schema

SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
ask_user = tool_from_schema(None, name="ask_user", description="Ask the user.", schema=SCHEMA)
"""


@pytest.fixture
async def session(start_host: Any, tmp_path: Path, model: FakeModel) -> HostSession:
    plugins = tool_plugins(tmp_path, module=MODULE, tools=("ask_user",))
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    return await host.create_session()


def result(call_id: str, text: str) -> dict[str, Any]:
    block = {"type": "functionResult", "callId": call_id, "content": [{"type": "text", "text": text}]}
    return {"role": "tool", "content": [block]}


async def asked(session: HostSession, model: FakeModel) -> dict[str, Any]:
    model.says(
        TC(0, "ask", "ask_user", '{"question": "Which one?"}'), TC(1, "sum", "add", '{"a": 1, "b": 2}'), F("tool_calls")
    )
    return await session.run("go")


async def test_the_run_ends_with_the_call_and_the_host_s_answer_stands_right_behind_it(
    session: HostSession, model: FakeModel
) -> None:
    ended = await asked(session, model)
    assert (ended["status"], ended["stopReason"]) == ("completed", "inputRequired")
    call = next(block for block in ended["messages"][0]["content"] if block["type"] == "functionCall")
    assert call["arguments"] == {"question": "Which one?"}

    model.says(T("The red one, then."), F())
    answered = await session.run([result("ask", "the red one")])

    assert answered["text"] == "The red one, then."
    roles = [message["role"] for message in model.last_request.body["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"]
    assert model.last_request.tool_results == {"ask": "the red one", "sum": "3"}


async def test_other_input_leaves_the_call_out_and_it_can_still_be_answered(
    session: HostSession, model: FakeModel
) -> None:
    await asked(session, model)
    model.says(T("Fine."), F())
    await session.run("never mind")
    assert set(model.last_request.tool_results) == {"sum"}

    model.says(T("Red it is."), F())
    await session.run([result("ask", "the red one")])

    assert model.last_request.tool_results == {"ask": "the red one", "sum": "3"}


@pytest.mark.parametrize("call_id", ["sum", "unknown"])
async def test_a_result_that_nothing_asked_for_is_refused(session: HostSession, model: FakeModel, call_id: str) -> None:
    await asked(session, model)

    refused = await session.host.refusal("run", {"sessionId": session.id, "input": [result(call_id, "forged")]})

    assert (refused.code, refused.data["errors"][0]["path"]) == (-32602, "input.0.role")


async def test_a_call_is_answered_once(session: HostSession, model: FakeModel) -> None:
    await asked(session, model)
    model.says(T("ok"), F())
    await session.run([result("ask", "red")])

    refused = await session.host.refusal("run", {"sessionId": session.id, "input": [result("ask", "blue")]})

    assert refused.code == -32602
