"""The scripted model: which reply answers, what it does, and how a bad script is refused."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from protocol.errors import KINDS
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock, Usage, text_message
from providers.api.ports import CallRequested, ChatRequest, Finished, ReasoningDelta, TextDelta, ask
from sidecar.errors import ConfigInvalid, ModelBadRequest, ModelNotFound, SidecarError
from sidecar.models.script_file import ErrorKind
from sidecar.models.scripted import ScriptedChat

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


def user(text: str, **fields: Any) -> ChatRequest:
    return ChatRequest([text_message("user", text)], **fields)


def after_result(text: str) -> ChatRequest:
    """A request whose last message is the result of a call of `weather`."""
    call = FunctionCallBlock(call_id="c1", name="weather", arguments={})
    result = FunctionResultBlock(call_id="c1", content=(TextBlock(text=text),))
    return ChatRequest(
        [
            text_message("user", "weather?"),
            Message(role="assistant", content=(call,)),
            Message(role="tool", content=(result,)),
        ]
    )


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(text: str) -> ScriptedChat:
        path = tmp_path / "script.toml"
        path.write_text(text, encoding="utf-8")
        return ScriptedChat("scripted", str(path))

    return write


async def test_echo_answers_with_the_last_user_text() -> None:
    chat = ScriptedChat("scripted", "echo")
    assert (await ask(chat, user("  Hello,  {world}\n\n— 饺子 "))).text == "  Hello,  {world}\n\n— 饺子 "
    assert (await ask(chat, user(""))).text == ""


async def test_replies_come_in_turn_by_what_the_request_holds(script: Any) -> None:
    chat = script('[[reply]]\ntext = "one"\n[[reply]]\ntext = "two"')
    second = ChatRequest([text_message("user", "a"), text_message("assistant", "one"), text_message("user", "b")])
    assert (await ask(chat, second)).text == "two"
    assert (await ask(chat, user("a"))).text == "one"
    assert (await ask(chat, user("a"))).text == "one"


async def test_sessions_at_once_do_not_disturb_each_other(script: Any) -> None:
    chat = script('[[reply]]\ntext = ["a", "{input}"]\ndelta_delay_ms = 1\n[[reply]]\ntext = "never"')
    answers = await asyncio.gather(*(ask(chat, user(str(n))) for n in range(20)))
    assert [answer.text for answer in answers] == [f"a{n}" for n in range(20)]


async def test_conditions_come_first_and_capture_what_they_found(script: Any) -> None:
    chat = script(r"""
        [[reply]]
        text = "in turn"
        [[reply]]
        when = 'my name is (?P<name>\w+)'
        text = "Hello, {name}! {unknown}"
        """)
    assert (await ask(chat, user("My name is Ruaidhrí"))).text == "Hello, Ruaidhrí! {unknown}"
    assert (await ask(chat, user("hi"))).text == "in turn"


async def test_a_tool_result_is_a_condition_and_a_placeholder(script: Any) -> None:
    chat = script('[[reply]]\nwhen_tool = "weather"\ntext = "It says: {result}"')
    assert (await ask(chat, after_result("rain"))).text == "It says: rain"
    with pytest.raises(ModelBadRequest):
        await ask(chat, user("hi"))


async def test_instructions_can_be_asked_for_and_shown(script: Any) -> None:
    chat = script('[[reply]]\nwhen_instructions = "brief"\ntext = "{instructions}"')
    assert (await ask(chat, user("hi", instructions="Be brief."))).text == "Be brief."


async def test_structured_data_is_answered_from_data_only(script: Any) -> None:
    chat = script("""
        [[reply]]
        text = "prose"
        [[reply]]
        when = "name is (?P<name>\\\\w+)"
        when_fields = ["name"]
        data = { name = "{name}", nested = [{ a = "{name}" }] }
        """)
    found = await ask(chat, user("my name is Ada", response_schema=SCHEMA))
    assert found.text == '{"name": "Ada", "nested": [{"a": "Ada"}]}'
    assert (await ask(chat, user("hello", response_schema=SCHEMA))).text == '{"name": null, "age": null}'
    assert (await ask(chat, user("my name is Ada"))).text == "prose"


async def test_everything_a_reply_can_do_comes_in_order(script: Any) -> None:
    chat = script("""
        [[reply]]
        reasoning = "hm"
        text = "Let me see"
        calls = [{ name = "weather", arguments = { city = "{input}" } }, { name = "b", raw_arguments = "{bad" }]
        usage = { input_tokens = 3, output_tokens = 4 }
        """)
    updates = [update async for update in chat.stream(user("Ghent"))]
    assert updates == [
        ReasoningDelta("hm"),
        TextDelta("Let "),
        TextDelta("me "),
        TextDelta("see"),
        CallRequested(FunctionCallBlock(call_id="call_0_0", name="weather", arguments={"city": "Ghent"})),
        CallRequested(FunctionCallBlock(call_id="call_0_1", name="b", arguments={}, raw_arguments="{bad")),
        Finished("toolCalls", Usage(input_tokens=3, output_tokens=4), "scripted"),
    ]


async def test_a_finish_reason_can_be_chosen(script: Any) -> None:
    chat = script('[[reply]]\ntext = "half a sen"\nfinish = "length"')
    assert (await ask(chat, user("hi"))).finish.reason == "length"


@pytest.mark.parametrize("kind", ErrorKind.__args__)
async def test_each_kind_of_error_can_be_played_after_some_text(script: Any, kind: str) -> None:
    stream = script(f'[[reply]]\ntext = ["par"]\nerror = "{kind}"\nretry_after_ms = 5').stream(user("hi"))
    assert await anext(stream) == TextDelta("par")
    with pytest.raises(SidecarError) as caught:
        await anext(stream)
    assert caught.value.wire()["code"] == KINDS[kind].code
    assert caught.value.wire()["data"]["retryAfterMs"] == 5


async def test_a_stall_lasts_until_the_call_is_closed(script: Any) -> None:
    stream = script('[[reply]]\ntext = "a"\nstall = true').stream(user("hi"))
    await anext(stream)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.02)
    await stream.aclose()


async def test_a_script_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelNotFound, match=re.escape("'no/such.toml'")):
        await ask(ScriptedChat("scripted", "no/such.toml"), user("hi"))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('[[reply]]\ntext = "a"\n[[reply]]\ntxet = "b"', 4, "txet"),
        ('[[reply]]\ntext = "a"\n\n[[reply]]\ntext = "b"\ndelay_ms = -1', 6, "delay_ms"),
        ('[[reply]]\nwhen = "("\ntext = "b"', 2, "regular expression"),
        ('[[reply]]\ntext = "a"\ndata = 1', 1, "not both"),
        ("[[reply]]\nwhen = 'x'", 1, "says nothing"),
        ('[[reply]]\ntext = "a', 2, "TOML"),
        ("", None, "reply"),
    ],
)
async def test_a_bad_script_is_refused_with_file_and_line(script: Any, text: str, line: int | None, says: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        await ask(script(text), user("hi"))
    assert says in caught.value.message
    assert caught.value.fields.get("line") == line
    assert caught.value.fields["file"].endswith("script.toml")
