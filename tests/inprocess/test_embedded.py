"""The embedded model for real: its child process, extraction under a schema, forced tools. Slow as tests go here."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from protocol.agents import NamedToolChoice, RunOptions
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock, text_message
from providers.api.ports import ChatRequest, ToolSpec, ask
from sidecar.config.endpoints import BUILT_IN
from sidecar.errors import ContextWindowExceeded, ModelError, ModelNotFound, ModelUnavailable
from sidecar.models import embedded_files
from sidecar.models.embedded import EmbeddedChat
from sidecar.models.json_text import parse_object

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.embedded,
    pytest.mark.skipif(
        not embedded_files.is_installed(), reason="the embedded model is not installed (agent-sidecar setup embedded)"
    ),
]

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
WEATHER = ToolSpec(
    "weather", "Tells the weather", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[EmbeddedChat]:
    chat = EmbeddedChat("embedded", BUILT_IN["embedded"], embedded_files.MODEL_ID)
    yield chat
    await chat.aclose()


def user(text: str, **fields: Any) -> ChatRequest:
    return ChatRequest([text_message("user", text)], **fields)


async def test_one_field_is_extracted_from_a_sentence_that_holds_it(client: EmbeddedChat) -> None:
    answer = await ask(
        client, user("My name is Ruaidhrí", instructions="Extract the user's name.", response_schema=NAME)
    )
    assert parse_object(answer.text) == {"name": "Ruaidhrí"}
    assert (answer.finish.reason, answer.finish.model) == ("stop", "smollm2-135m")


async def test_the_same_question_gets_the_same_answer(client: EmbeddedChat) -> None:
    question = user("Say hello", options=RunOptions(max_output_tokens=8))
    assert (await ask(client, question)).text == (await ask(client, question)).text


async def test_a_required_choice_of_tools_ends_in_a_call_of_one_of_them(client: EmbeddedChat) -> None:
    other = ToolSpec("clock", "Tells the time", {"type": "object", "properties": {}})
    options = RunOptions(tool_choice="required")
    answer = await ask(client, user("What is the weather in Ghent?", tools=[WEATHER, other], options=options))
    assert answer.calls[0].name in {"weather", "clock"}
    assert (len(answer.calls), answer.text, answer.finish.reason) == (1, "", "toolCalls")


async def test_a_named_choice_ends_in_a_call_of_that_tool(client: EmbeddedChat) -> None:
    other = ToolSpec("clock", "Tells the time", {"type": "object", "properties": {}})
    options = RunOptions(tool_choice=NamedToolChoice(name="weather"))
    answer = await ask(client, user("What is the weather in Ghent?", tools=[other, WEATHER], options=options))
    assert [(call.name, call.arguments["city"].lower()) for call in answer.calls] == [("weather", "ghent")]


async def test_calls_and_results_of_the_history_are_no_obstacle(client: EmbeddedChat) -> None:
    history = [
        text_message("user", "What is the weather in Ghent?"),
        Message(
            role="assistant", content=(FunctionCallBlock(call_id="c1", name="weather", arguments={"city": "Ghent"}),)
        ),
        Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=(TextBlock(text="rain"),)),)),
    ]
    answer = await ask(client, ChatRequest(history, tools=[WEATHER], options=RunOptions(max_output_tokens=5)))
    assert answer.text
    assert answer.calls == ()


async def test_a_request_longer_than_the_context_is_refused_by_name(client: EmbeddedChat) -> None:
    with pytest.raises(ContextWindowExceeded):
        await ask(client, user("word " * 5000))


async def test_a_killed_child_fails_the_call_and_the_next_one_starts_another(client: EmbeddedChat) -> None:
    async with aclosing(client.stream(user("Tell me a long story"))) as stream:
        await anext(stream)
        first = client.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ModelUnavailable, match="starts it again"):
            async for _ in stream:
                pass
    assert (await ask(client, user("hi", options=RunOptions(max_output_tokens=2)))).text
    assert client.pid not in {None, first}


async def test_the_child_ends_with_its_client() -> None:
    chat = EmbeddedChat("embedded", BUILT_IN["embedded"], embedded_files.MODEL_ID)
    await ask(chat, user("hi", options=RunOptions(max_output_tokens=2)))
    pid = chat.pid
    assert pid is not None
    await chat.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_users_own_file_is_served_under_its_short_name(tmp_path: Path) -> None:
    bundled = embedded_files.bundled_file()
    assert bundled is not None
    own = tmp_path / "mine.gguf"
    own.symlink_to(bundled)
    chat = EmbeddedChat("embedded", BUILT_IN["embedded"], str(own))
    try:
        answer = await ask(chat, user("hi", options=RunOptions(max_output_tokens=2)))
        assert (answer.finish.model, chat.traits.tools) == ("mine", None)
    finally:
        await chat.aclose()


async def test_a_file_that_does_not_load_is_an_error_without_its_path(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 64)
    chat = EmbeddedChat("embedded", BUILT_IN["embedded"], str(broken))
    with pytest.raises(ModelError) as caught:
        await ask(chat, user("hi"))
    assert str(tmp_path) not in str(caught.value)
    await chat.aclose()


async def test_calls_at_once_share_one_child(client: EmbeddedChat) -> None:
    asked = [ask(client, user(f"hi {n}", options=RunOptions(max_output_tokens=2))) for n in range(3)]
    assert len(await asyncio.gather(*asked)) == 3
    assert client.pid is not None


async def test_what_is_no_gguf_file_is_not_found(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    for name in (str(text), str(tmp_path / "missing.gguf")):
        with pytest.raises(ModelNotFound):
            await ask(EmbeddedChat("embedded", BUILT_IN["embedded"], name), user("hi"))


async def test_the_child_ends_when_its_parent_is_killed() -> None:
    program = """
import asyncio, sys, time
from sidecar.config.endpoints import BUILT_IN
from sidecar.models.embedded import EmbeddedChat
from protocol.messages import text_message
from providers.api.ports import ChatRequest, ask

async def main():
    chat = EmbeddedChat("embedded", BUILT_IN["embedded"], "smollm2-135m")
    await anext(chat.stream(ChatRequest([text_message("user", "Tell me a long story")])))
    print(chat.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    assert await asyncio.to_thread(_ends, child, within=5.0)


def _ends(pid: int, within: float) -> bool:
    deadline = time.monotonic() + within
    while (runs := Path(f"/proc/{pid}/stat").exists() and not _is_zombie(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs


def _is_zombie(pid: int) -> bool:
    """Whether it has ended, and nobody has asked for its exit code: no init runs in some containers."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
